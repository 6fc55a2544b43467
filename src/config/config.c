/* See config.h. The packed form is a header and then every field of the two tables below, in their
 * order: a number as 8 bytes in the machine's byte order, a string as its length (NUL included) and
 * its bytes, a list as its count and its strings. The tables (the first is made from settings.def)
 * drive writing, reading and freeing alike, so the three cannot differ.
 *
 * A process is given only what it needs: each field says who reads it, and is empty for the others.
 *
 * Writer and reader are of one build and the memfd is sealed, yet the reader bounds everything: the
 * warden runs with privileges, and a wrong descriptor must be an error, not an adventure. */

#include "config/config.h"

#include "base/fd.h"
#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char magic[] = "cloche configuration 8\n";

enum kind { K_STR, K_RULES, K_LIST, K_U32, K_U64, K_LIMITS };
#define KIND_PATH            K_STR
#define KIND_TEXT            K_STR
#define KIND_SECRET          K_STR
#define KIND_ENV             K_STR
#define KIND_MODULES         K_STR
#define KIND_RULES           K_RULES
#define KIND_SETS            K_RULES
#define KIND_CHOICE(words)   K_STR
#define KIND_SOME(words)     K_STR
#define KIND_LEVEL           K_U32
#define KIND_NUM(min, max)   K_U32
#define KIND_CORES(min, max) K_U32
#define KIND_LONG(min, max)  K_U64

struct field {
    enum kind kind;
    size_t offset;
    enum config_reader least; /* who reads it, and those after it */
};

/* clang-format off */
static const struct field config_fields[] = {
#define AT(member)                               offsetof(struct config, member)
#define SETTING(reader, member, name, type, ...) {KIND_##type, AT(IN member), CONFIG_##reader},
#define FIELD(reader, type, member)              {KIND_##type, AT(IN member), CONFIG_##reader},
#define LIMITS_OF(reader, member)                {K_LIMITS, AT(IN member), CONFIG_##reader},
#include "config/settings.def"
    {K_U32, AT(nprofiles), CONFIG_NURSERY},
};
/* clang-format on */

#define PROFILE_FIELD(kind, member)                                                                \
    { kind, offsetof(struct config_profile, member), CONFIG_NURSERY }
static const struct field profile_fields[] = {
    PROFILE_FIELD(K_STR, name),     PROFILE_FIELD(K_STR, python),    PROFILE_FIELD(K_LIST, sites),
    PROFILE_FIELD(K_LIST, preload), PROFILE_FIELD(K_LIST, binds),    PROFILE_FIELD(K_LIST, mounts),
    PROFILE_FIELD(K_LIST, allowed), PROFILE_FIELD(K_U32, pool),      PROFILE_FIELD(K_U32, zygotes),
    PROFILE_FIELD(K_U32, removed),  PROFILE_FIELD(K_U32, live),      PROFILE_FIELD(K_U64, stamp),
    PROFILE_FIELD(K_LIST, env),     PROFILE_FIELD(K_LIMITS, limits),
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
_Static_assert(sizeof(unsigned) == sizeof(uint32_t), "nprofiles is packed as a u32");

bool config_name_is_good(const char *name) {
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-");
    return n >= 1 && n <= 32 && name[n] == '\0';
}

/* The length of the name that a profile and its twin share. */
static size_t stem(const struct config_profile *p) {
    size_t len = strlen(p->name), tail = sizeof CONFIG_LIVE - 1;
    bool is_twin = p->live && len > tail && strcmp(p->name + len - tail, CONFIG_LIVE) == 0;
    return is_twin ? len - tail : len;
}

static bool has_good_name(const struct config_profile *p) {
    char name[64];
    size_t n = stem(p);
    bool is_twin = p->name[n] != '\0';
    if (n >= sizeof name || is_twin != (p->live == 1))
        return false;
    memcpy(name, p->name, n);
    name[n] = '\0';
    return config_name_is_good(name);
}

unsigned config_twin(const struct config *c, unsigned i) {
    const struct config_profile *p = &c->profiles[i];
    size_t n = stem(p);
    for (unsigned k = 0; k < c->nprofiles; k++) {
        const struct config_profile *q = &c->profiles[k];
        if (q->live != p->live && stem(q) == n && strncmp(q->name, p->name, n) == 0)
            return k;
    }
    return c->nprofiles;
}

unsigned config_named(const struct config *c, unsigned n) {
    unsigned named = 0;
    for (unsigned i = 0; i < n; i++)
        named += !c->profiles[i].live;
    return named;
}

/* Writing. */

static void put_number(struct buf *b, uint64_t v) {
    buf_add(b, &v, sizeof v);
}

static void put_string(struct buf *b, const char *s) {
    size_t len = strlen(s ? s : "") + 1;
    put_number(b, len);
    buf_add(b, s ? s : "", len);
}

static void put_list(struct buf *b, const struct config_list *l) {
    put_number(b, l->n);
    for (unsigned k = 0; k < l->n; k++)
        put_string(b, l->items[k]);
}

static void put_field(struct buf *b, const struct field *f, const void *object) {
    const void *p = (const char *)object + f->offset;
    switch (f->kind) {
    case K_STR:
    case K_RULES:
        put_string(b, *(char *const *)p);
        break;
    case K_LIST:
        put_list(b, p);
        break;
    case K_U32:
        put_number(b, *(const uint32_t *)p);
        break;
    case K_U64:
        put_number(b, *(const uint64_t *)p);
        break;
    case K_LIMITS:
        for (size_t i = 0; i < LIMITS_; i++)
            put_number(b, limits_value(p, i));
        break;
    }
}

static void encode(const struct config *c, const struct config_part *part, struct buf *to) {
    static const struct config nothing;
    buf_add(to, magic, sizeof magic);
    for (size_t k = 0; k < COUNT(config_fields); k++)
        put_field(to, &config_fields[k], config_fields[k].least <= part->reader ? c : &nothing);
    for (unsigned i = 0; i < c->nprofiles && part->reader != CONFIG_GATE; i++) {
        const struct config_profile *p = &c->profiles[i];
        const struct config_profile name_only = {
            .name = p->name, .python = (char *)"/", .live = p->live, .removed = 1};
        bool all = part->reader != CONFIG_NURSERY || i == part->profile;
        for (size_t k = 0; k < COUNT(profile_fields); k++)
            put_field(to, &profile_fields[k], all ? p : &name_only);
    }
}

void config_encode(const struct config *c, struct buf *to) {
    encode(c, &(struct config_part){CONFIG_CLI, 0}, to);
}

bool config_profile_same(const struct config_profile *a, const struct config_profile *b) {
    AUTO_BUF one = BUF_INIT;
    AUTO_BUF two = BUF_INIT;
    for (size_t k = 0; k < COUNT(profile_fields); k++) {
        put_field(&one, &profile_fields[k], a);
        put_field(&two, &profile_fields[k], b);
    }
    return one.len == two.len && memcmp(one.data, two.data, one.len) == 0;
}

int config_pack(const struct config *c, const struct config_part *part, int *ret_fd,
                struct err *e) {
    AUTO_BUF b = BUF_INIT;
    encode(c, part, &b);
    if (b.len > CONFIG_MAX_BYTES)
        return err_user(e, "bad_config", "the configuration takes %zu bytes, %u are allowed", b.len,
                        CONFIG_MAX_BYTES);
    /* What could not be read again must not be sent. */
    struct config again;
    if (config_decode(b.data, b.len, &again, e) < 0)
        return -1;
    config_done(&again);
    return memfd_of("cloche-config", b.data, b.len, ret_fd, e);
}

/* Reading. One `bad` flag remembers the first fault, as in wire.h. */

struct reader {
    const unsigned char *at, *end;
    bool bad;
};

static uint64_t get_number(struct reader *r, uint64_t max) {
    uint64_t v = 0;
    if (r->bad || (size_t)(r->end - r->at) < sizeof v) {
        r->bad = true;
        return 0;
    }
    memcpy(&v, r->at, sizeof v);
    r->at += sizeof v;
    r->bad = v > max;
    return r->bad ? 0 : v;
}

/* A copy, owned by the caller; NULL when bad. */
static char *get_string(struct reader *r, size_t most) {
    size_t len = (size_t)get_number(r, most + 1);
    if (r->bad || len == 0 || len > (size_t)(r->end - r->at) ||
        memchr(r->at, '\0', len) != r->at + len - 1) {
        r->bad = true;
        return NULL;
    }
    char *s = xstrdup((const char *)r->at);
    r->at += len;
    return s;
}

static void get_list(struct reader *r, struct config_list *ret) {
    unsigned n = (unsigned)get_number(r, CONFIG_MAX_LIST);
    ret->items = n ? xcalloc(n, sizeof *ret->items) : NULL;
    for (ret->n = 0; ret->n < n && !r->bad; ret->n++)
        ret->items[ret->n] = get_string(r, CONFIG_MAX_STRING);
}

static void get_field(struct reader *r, const struct field *f, void *object) {
    void *p = (char *)object + f->offset;
    switch (f->kind) {
    case K_STR:
        *(char **)p = get_string(r, CONFIG_MAX_STRING);
        break;
    case K_RULES:
        *(char **)p = get_string(r, CONFIG_MAX_RULES);
        break;
    case K_LIST:
        get_list(r, p);
        break;
    case K_U32:
        *(uint32_t *)p = (uint32_t)get_number(r, UINT32_MAX);
        break;
    case K_U64:
        *(uint64_t *)p = get_number(r, UINT64_MAX);
        break;
    case K_LIMITS:
        for (size_t i = 0; i < LIMITS_; i++)
            limits_set(p, i, get_number(r, limits_most(i)));
        break;
    }
}

/* What is well-formed and still makes no sense. */
static int check_meaning(const struct config *c, struct err *e) {
    if (c->log_level > LOG_DEBUG)
        return err_set(e, EPROTO, "configuration: log level %u", c->log_level);
    if (c->http.listeners > HTTP_MAX_LISTENERS)
        return err_set(e, EPROTO, "configuration: %u listening sockets", c->http.listeners);
    for (unsigned i = 0; i < c->nprofiles; i++) {
        const struct config_profile *p = &c->profiles[i];
        char quoted[80];
        if (!has_good_name(p))
            return err_set(e, EPROTO, "configuration: profile name %s",
                           log_quote(p->name, quoted, sizeof quoted));
        if (p->python[0] != '/')
            return err_set(e, EPROTO, "configuration: profile %s: python is %s, not absolute",
                           p->name, log_quote(p->python, quoted, sizeof quoted));
        for (unsigned k = 0; k < i; k++)
            if (strcmp(p->name, c->profiles[k].name) == 0)
                return err_set(e, EPROTO, "configuration: two profiles named %s", p->name);
    }
    return 0;
}

static void read_all(struct reader *r, struct config *c) {
    for (size_t k = 0; k < COUNT(config_fields); k++)
        get_field(r, &config_fields[k], c);
    if (c->nprofiles > CONFIG_MAX_PROFILES) {
        c->nprofiles = 0;
        r->bad = true;
    }
    for (unsigned i = 0; i < c->nprofiles; i++)
        for (size_t k = 0; k < COUNT(profile_fields); k++)
            get_field(r, &profile_fields[k], &c->profiles[i]);
}

int config_decode(const void *data, size_t len, struct config *ret, struct err *e) {
    *ret = (struct config){0};
    if (len < sizeof magic || memcmp(data, magic, sizeof magic) != 0)
        return err_set(e, EPROTO, "configuration: not ours, or of another version");
    struct reader r = {(const unsigned char *)data + sizeof magic,
                       (const unsigned char *)data + len, false};
    struct config c = {0};
    read_all(&r, &c);
    int rc;
    if (r.bad || r.at != r.end)
        rc = err_set(e, EPROTO, "configuration: malformed at byte %zu of %zu",
                     (size_t)(r.at - (const unsigned char *)data), len);
    else
        rc = check_meaning(&c, e);
    if (rc < 0)
        config_done(&c);
    else
        *ret = c;
    return rc;
}

int config_unpack(int fd, struct config *ret, struct err *e) {
    *ret = (struct config){0};
    struct stat st;
    if (fstat(fd, &st) < 0)
        return err_sys(e, "configuration: fstat");
    if (!S_ISREG(st.st_mode) || st.st_size < 0 || st.st_size > CONFIG_MAX_BYTES)
        return err_set(e, EPROTO, "configuration: descriptor %d is not a memfd of ours", fd);
    AUTO_BUF b = BUF_INIT;
    size_t want = (size_t)st.st_size;
    char *to = buf_reserve(&b, want);
    size_t have = 0;
    while (have < want) {
        ssize_t n = pread(fd, to + have, want - have, (off_t)have);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(e, "configuration: read");
        if (n == 0)
            break;
        have += (size_t)n;
    }
    buf_commit(&b, have);
    int r = config_decode(b.data, b.len, ret, e);
    explicit_bzero(b.data, b.len);
    return r;
}

/* SECURITY: what is freed stays in memory, also in that of children. */
static void wipe(char *text) {
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
}

static void free_field(const struct field *f, void *object) {
    void *p = (char *)object + f->offset;
    if (f->kind == K_STR || f->kind == K_RULES) {
        wipe(*(char **)p);
        *(char **)p = NULL;
    } else if (f->kind == K_LIST) {
        struct config_list *l = p;
        for (unsigned k = 0; k < l->n; k++)
            wipe(l->items[k]);
        free(l->items);
        *l = (struct config_list){0};
    }
}

void config_keep_numbers(struct config *c) {
    for (unsigned i = 0; i < c->nprofiles; i++)
        for (size_t k = 0; k < COUNT(profile_fields); k++)
            free_field(&profile_fields[k], &c->profiles[i]);
    for (size_t k = 0; k < COUNT(config_fields); k++)
        free_field(&config_fields[k], c);
}

void config_done(struct config *c) {
    config_keep_numbers(c);
    *c = (struct config){0};
}
