/* See codec.h. Each payload is a table of fields, and two walkers read and write them all. How the
 * kinds travel: u32, u64, str and bytes as wire.c has them; strs as a count and that many strings;
 * fds as a count, fd_map as a set of bits, and the descriptors that they tell of beside the packet,
 * in the order of the fields; fd and fd_or as nothing but the descriptor.
 *
 * Fields are only ever added at the end. A packet of an older version is therefore the beginning of
 * one of ours: the writer notes where each version ends, and wire_lower cuts there. */

#include "wire/codec.h"

#include "wire/fields.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#define FIELD(since, kind, name, most) {WIRE_##kind, since, offsetof(self, name), most},
#define P(lower, upper, surplus)                                                                   \
    static const struct wire_layout *lower##_layout(void) {                                        \
        typedef struct lower self;                                                                 \
        static const struct wire_field fields[] = {lower##_fields(FIELD)};                         \
        static const struct wire_layout l = {WIRE_##upper, sizeof(self), surplus,                  \
                                             sizeof fields / sizeof *fields, fields};              \
        return &l;                                                                                 \
    }
WIRE_PAYLOADS(P)
#undef P

const struct wire_layout *wire_layout(enum wire_payload which) {
    static const struct wire_layout *(*const all[])(void) = {
#define P(lower, upper, surplus) lower##_layout,
        WIRE_PAYLOADS(P)
#undef P
    };
    return all[which]();
}

/* ---- writing ---- */

/* Cut between two characters, unless `most` is 0. */
static void put_text(struct wire_out *o, const char *s, uint32_t most) {
    const char *text = s ? s : "";
    size_t len = most ? strnlen(text, (size_t)most + 1) : 0;
    if (len <= most) {
        wire_put_str(o, text);
        return;
    }
    for (len = most; len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80;)
        len--;
    wire_put_strn(o, text, len);
}

static void put_fds(struct wire_out *o, const struct wire_fds *f, uint32_t most) {
    if (f->n > most) {
        o->bad = true;
        return;
    }
    wire_put_u32(o, f->n);
    for (unsigned k = 0; k < f->n; k++)
        wire_put_fd(o, f->fd[k]);
}

static void put_map(struct wire_out *o, const int *fds, uint32_t n) {
    uint32_t bits = 0;
    for (uint32_t k = 0; k < n; k++)
        bits |= (uint32_t)(fds[k] >= 0) << k;
    wire_put_u32(o, bits);
    for (uint32_t k = 0; k < n; k++) {
        if (fds[k] >= 0)
            wire_put_fd(o, fds[k]);
    }
}

static void put_field(struct wire_out *o, const struct wire_field *f, const void *at) {
    const struct wire_bytes *bytes = at;
    const struct wire_strs *strs = at;
    switch (f->kind) {
    case WIRE_u32:
        wire_put_u32(o, *(const uint32_t *)at);
        break;
    case WIRE_u64:
        wire_put_u64(o, *(const uint64_t *)at);
        break;
    case WIRE_str:
        put_text(o, *(const char *const *)at, 0);
        break;
    case WIRE_text:
        put_text(o, *(const char *const *)at, f->most);
        break;
    case WIRE_bytes:
        wire_put_bytes(o, bytes->data, bytes->len);
        break;
    case WIRE_strs:
        wire_put_u32(o, strs->n);
        wire_put_raw(o, strs->raw, strs->len);
        break;
    case WIRE_limits:
        limits_put(o, at);
        break;
    case WIRE_fd:
        wire_put_fd(o, *(const int *)at);
        break;
    case WIRE_fd_or:
        if (*(const int *)at >= 0)
            wire_put_fd(o, *(const int *)at);
        break;
    case WIRE_fds:
        put_fds(o, at, f->most);
        break;
    case WIRE_fd_map:
        put_map(o, at, f->most);
        break;
    }
}

void wire_put(struct wire_out *o, const struct wire_layout *l, const void *m) {
    wire_begin(o, l->type);
    for (size_t k = 0; k < l->nfields; k++) {
        const struct wire_field *f = &l->fields[k];
        wire_mark(o, f->since);
        put_field(o, f, (const char *)m + f->offset);
    }
}

void wire_strs_add(struct buf *raw, const char *s) {
    uint32_t len = (uint32_t)strlen(s) + 1;
    buf_add(raw, &len, sizeof len);
    buf_add(raw, s, len);
}

/* ---- reading ---- */

struct reader {
    struct wire_in *in;
    unsigned fd; /* the next descriptor */
};

static int next_fd(struct reader *r) {
    if (r->fd < r->in->nfds)
        return r->in->fds[r->fd++];
    r->in->bad = true;
    return -1;
}

static void get_fds(struct reader *r, struct wire_fds *ret, uint32_t most) {
    uint32_t n = wire_get_u32(r->in);
    if (n > most) {
        r->in->bad = true;
        return;
    }
    for (uint32_t k = 0; k < n && !r->in->bad; k++) {
        ret->fd[k] = next_fd(r);
        ret->n += !r->in->bad;
    }
}

static void get_map(struct reader *r, int *ret, uint32_t n) {
    uint32_t bits = wire_get_u32(r->in);
    r->in->bad |= bits >> n != 0;
    for (uint32_t k = 0; k < n && !r->in->bad; k++) {
        if (bits & 1u << k)
            ret[k] = next_fd(r);
    }
}

static void get_strs(struct wire_in *i, struct wire_strs *ret) {
    uint32_t n = wire_get_u32(i);
    size_t from = i->at;
    for (uint32_t k = 0; k < n && !i->bad; k++)
        wire_get_str(i, WIRE_MAX);
    if (!i->bad)
        *ret = (struct wire_strs){n, i->data + from, i->at - from};
}

static void get_field(struct reader *r, const struct wire_field *f, void *to) {
    struct wire_in *i = r->in;
    struct wire_bytes *bytes = to;
    uint32_t most = f->most ? f->most : WIRE_MAX;
    switch (f->kind) {
    case WIRE_u32:
        *(uint32_t *)to = wire_get_u32(i);
        i->bad |= f->most && *(uint32_t *)to > f->most;
        break;
    case WIRE_u64:
        *(uint64_t *)to = wire_get_u64(i);
        break;
    case WIRE_str:
    case WIRE_text:
        *(const char **)to = wire_get_str(i, most);
        break;
    case WIRE_bytes:
        bytes->data = wire_get_bytes(i, &bytes->len);
        break;
    case WIRE_strs:
        get_strs(i, to);
        break;
    case WIRE_limits:
        *(struct limits *)to = limits_get(i);
        break;
    case WIRE_fd:
        *(int *)to = next_fd(r);
        break;
    case WIRE_fd_or:
        *(int *)to = r->fd < i->nfds ? next_fd(r) : -1;
        break;
    case WIRE_fds:
        get_fds(r, to, f->most);
        break;
    case WIRE_fd_map:
        get_map(r, to, f->most);
        break;
    }
}

/* What a field is that was not read: an older peer has none, or the packet is bad. */
static void set_default(const struct wire_field *f, void *to) {
    if (f->kind == WIRE_str || f->kind == WIRE_text)
        *(const char **)to = "";
    else if (f->kind == WIRE_fd || f->kind == WIRE_fd_or)
        *(int *)to = -1;
    else if (f->kind == WIRE_fd_map)
        memset(to, 0xff, f->most * sizeof(int));
}

static int get_end(const struct reader *r, bool surplus, struct err *e) {
    if (r->in->cut)
        return err_set(e, EMFILE, "%s: no descriptor is left for what came with it",
                       wire_type_name(r->in->type));
    if (wire_end(r->in, e) < 0)
        return -1;
    if (!surplus && r->fd != r->in->nfds)
        return err_set(e, EPROTO, "%s: %u descriptors too many", wire_type_name(r->in->type),
                       r->in->nfds - r->fd);
    return 0;
}

int wire_get(struct wire_in *i, const struct wire_layout *l, void *ret, struct err *e) {
    struct reader r = {.in = i};
    memset(ret, 0, l->size);
    bool ours = i->type == l->type;
    for (size_t k = 0; k < l->nfields; k++) {
        const struct wire_field *f = &l->fields[k];
        void *to = (char *)ret + f->offset;
        set_default(f, to);
        if (ours && !i->bad && f->since <= i->version)
            get_field(&r, f, to);
    }
    if (!ours)
        return err_set(e, EPROTO, "%s where %s was expected", wire_type_name(i->type),
                       wire_type_name(l->type));
    return get_end(&r, l->surplus, e);
}

int wire_get_nothing(struct wire_in *i, struct err *e) {
    return get_end(&(struct reader){.in = i}, false, e);
}

const char *wire_strs_next(struct wire_strs *s) {
    uint32_t len;
    if (s->n == 0 || s->len < sizeof len)
        return NULL;
    memcpy(&len, s->raw, sizeof len);
    const char *text = (const char *)s->raw + sizeof len;
    s->n--;
    s->raw += sizeof len + len;
    s->len -= sizeof len + len;
    return text;
}

int wire_keep(struct wire_in *i, int fd) {
    for (unsigned k = i->fd_at; fd >= 0 && k < i->nfds; k++) {
        if (i->fds[k] == fd)
            i->fds[k] = -1;
    }
    return fd;
}

void wire_keep_all(struct wire_in *i, const int *from, unsigned n, int *to) {
    for (unsigned k = 0; k < n; k++)
        to[k] = wire_keep(i, from[k]);
}
