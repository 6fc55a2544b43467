/* See frame.h. */

#include "api/dialects/jupyter/frame.h"

#include "base/json.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define OBJECTS 4 /* header, parent header, metadata, content */

/* ---- numbers ---- */

static uint64_t get_number(const uint8_t *at, unsigned bytes, bool big) {
    uint64_t v = 0;
    for (unsigned i = 0; i < bytes; i++)
        v |= (uint64_t)at[i] << 8 * (big ? bytes - 1 - i : i);
    return v;
}

static void put_number(struct buf *to, uint64_t v, unsigned bytes, bool big) {
    for (unsigned i = 0; i < bytes; i++)
        buf_addc(to, (char)(v >> 8 * (big ? bytes - 1 - i : i)));
}

/* ---- in ---- */

static int bad(struct err *e, const char *why) {
    return err_user(e, "bad_message", "%s", why);
}

struct layout {
    unsigned width; /* bytes of a number */
    bool big;       /* endian */
    bool has_end;   /* the last offset is where the last part ends */
};

#define PARTS_MAX (1 + OBJECTS + JUPYTER_BUFFERS_MAX)
struct parts {
    struct jupyter_part at[PARTS_MAX];
    unsigned n;
};

/* The parts that a binary frame says it has: each within it, none before the one before. */
static int cut(const uint8_t *data, size_t len, const struct layout *how, struct parts *ret,
               struct err *e) {
    uint64_t n = len < how->width ? 0 : get_number(data, how->width, how->big);
    uint64_t ends = how->has_end ? 1 : 0;
    if (n < 1 + ends || n > PARTS_MAX - OBJECTS + ends * (OBJECTS + 1) ||
        (n + 1) * how->width > len)
        return bad(e, "a binary frame begins with a number of parts that it cannot have");
    uint64_t before = (n + 1) * how->width;
    *ret = (struct parts){.n = (unsigned)(n - ends)};
    for (uint64_t i = 0; i < n; i++) {
        uint64_t at = get_number(data + (i + 1) * how->width, how->width, how->big);
        if (at < before || at > len)
            return bad(e, "a part of a binary frame is not within it");
        if (i > 0)
            ret->at[i - 1].len = (size_t)(at - before);
        if (i < ret->n)
            ret->at[i].data = (const char *)data + at;
        before = at;
    }
    if (!how->has_end)
        ret->at[n - 1].len = len - (size_t)before;
    return 0;
}

static int read_object(const struct jupyter_part *p, json_t **ret, struct err *e) {
    struct err why;
    if (json_read(p->data, p->len, JSON_DEPTH_MAX, ret, &why) < 0)
        return err_user(e, "bad_message", "%.300s", why.text);
    return json_is_object(*ret) ? 0 : bad(e, "a part of the message is not an object");
}

static int set_channel(struct jupyter_in *m, const char *name, size_t len, struct err *e) {
    static const char *const known[] = {"shell", "control", "stdin", "iopub"};
    for (size_t i = 0; name && i < sizeof known / sizeof *known; i++) {
        if (len == strlen(known[i]) && memcmp(name, known[i], len) == 0) {
            memcpy(m->channel, name, len);
            return 0;
        }
    }
    return bad(e, "the message's channel is none of shell, control, stdin");
}

static int frame_finish(struct jupyter_in *m, struct err *e) {
    m->type = json_string_value(json_object_get(m->header, "msg_type"));
    m->id = json_string_value(json_object_get(m->header, "msg_id"));
    if (!m->type || !m->id)
        return bad(e, "the message's header has no msg_type or no msg_id");
    if (!json_is_object(m->content))
        return bad(e, "the message has no content that is an object");
    return 0;
}

static int read_text(const struct jupyter_part *text, struct jupyter_in *m, struct err *e) {
    if (read_object(text, &m->all[0], e) < 0)
        return -1;
    const json_t *channel = json_object_get(m->all[0], "channel");
    m->header = json_object_get(m->all[0], "header");
    m->metadata = json_object_get(m->all[0], "metadata");
    m->content = json_object_get(m->all[0], "content");
    if (!channel) /* as clients of one channel do */
        memcpy(m->channel, "shell", 6);
    else if (set_channel(m, json_string_value(channel), json_string_length(channel), e) < 0)
        return -1;
    return frame_finish(m, e);
}

static void take_buffers(struct jupyter_in *m, const struct jupyter_part *parts, unsigned n) {
    m->nbuffers = n;
    memcpy(m->buffers, parts, n * sizeof *parts);
}

static int read_v1(const void *data, size_t len, struct jupyter_in *m, struct err *e) {
    const struct layout how = {.width = 8, .has_end = true};
    struct parts parts;
    if (cut(data, len, &how, &parts, e) < 0)
        return -1;
    if (parts.n < 1 + OBJECTS)
        return bad(e, "a message has a channel and four objects");
    for (unsigned i = 0; i < OBJECTS; i++) {
        if (read_object(&parts.at[1 + i], &m->all[i], e) < 0)
            return -1;
    }
    m->header = m->all[0];
    m->metadata = m->all[2];
    m->content = m->all[3];
    take_buffers(m, parts.at + 1 + OBJECTS, parts.n - 1 - OBJECTS);
    return set_channel(m, parts.at[0].data, parts.at[0].len, e) < 0 ? -1 : frame_finish(m, e);
}

static int read_old(const void *data, size_t len, struct jupyter_in *m, struct err *e) {
    const struct layout how = {.width = 4, .big = true};
    struct parts parts;
    if (cut(data, len, &how, &parts, e) < 0)
        return -1;
    take_buffers(m, parts.at + 1, parts.n - 1);
    return read_text(&parts.at[0], m, e);
}

int jupyter_read(const void *data, size_t len, bool binary, bool v1, struct jupyter_in *ret,
                 struct err *e) {
    *ret = (struct jupyter_in){.members = BUF_INIT, .shown = BUF_INIT};
    int r;
    if (binary)
        r = v1 ? read_v1(data, len, ret, e) : read_old(data, len, ret, e);
    else
        r = read_text(&(struct jupyter_part){data, len}, ret, e);
    if (r < 0)
        jupyter_in_done(ret);
    return r;
}

void jupyter_in_done(struct jupyter_in *m) {
    for (size_t i = 0; i < sizeof m->all / sizeof *m->all; i++)
        json_decref(m->all[i]);
    free(m->parent);
    buf_done(&m->members);
    buf_done(&m->shown);
    *m = (struct jupyter_in){.members = BUF_INIT, .shown = BUF_INIT};
}

/* ---- out ---- */

void jupyter_out_free(struct jupyter_out *m) {
    if (!m)
        return;
    buf_done(&m->header);
    buf_done(&m->parent);
    buf_done(&m->metadata);
    buf_done(&m->content);
    for (unsigned i = 0; i < m->nbuffers; i++)
        buf_done(&m->buffers[i]);
    free(m->buffers);
    blob_unref(m->frames[0]);
    blob_unref(m->frames[1]);
    free(m);
}

size_t jupyter_out_size(const struct jupyter_out *m) {
    size_t n = sizeof *m + m->header.len + m->parent.len + m->metadata.len + m->content.len;
    for (unsigned i = 0; i < m->nbuffers; i++)
        n += m->buffers[i].len + sizeof m->buffers[i];
    return n;
}

static void add(struct buf *to, const struct buf *b) {
    buf_add(to, b->data, b->len);
}

static void write_v1(const struct jupyter_out *m, struct buf *to) {
    const struct buf *objects[OBJECTS] = {&m->header, &m->parent, &m->metadata, &m->content};
    uint64_t n = 2 + OBJECTS + m->nbuffers, at = 8 * (n + 1);
    put_number(to, n, 8, false);
    put_number(to, at, 8, false);
    put_number(to, at += strlen(m->channel), 8, false);
    for (unsigned i = 0; i < OBJECTS; i++)
        put_number(to, at += objects[i]->len, 8, false);
    for (unsigned i = 0; i < m->nbuffers; i++)
        put_number(to, at += m->buffers[i].len, 8, false);
    buf_adds(to, m->channel);
    for (unsigned i = 0; i < OBJECTS; i++)
        add(to, objects[i]);
    for (unsigned i = 0; i < m->nbuffers; i++)
        add(to, &m->buffers[i]);
}

static void write_member(struct jw *j, const char *key, const struct buf *object) {
    jw_key(j, key);
    jw_raw(j, object->data, object->len);
}

static void write_text(const struct jupyter_out *m, struct buf *to) {
    struct jw j = JW_INIT(to);
    jw_object(&j);
    jw_key_str(&j, "channel", m->channel);
    jw_key_str(&j, "msg_type", m->type);
    jw_key_str(&j, "msg_id", m->id);
    write_member(&j, "header", &m->header);
    write_member(&j, "parent_header", &m->parent);
    write_member(&j, "metadata", &m->metadata);
    write_member(&j, "content", &m->content);
    jw_key(&j, "buffers");
    jw_array(&j);
    jw_array_end(&j);
    jw_object_end(&j);
}

static void write_old(const struct jupyter_out *m, struct buf *to) {
    AUTO_BUF text = BUF_INIT;
    uint64_t n = 1 + m->nbuffers, at = 4 * (n + 1);
    write_text(m, &text);
    put_number(to, n, 4, true);
    put_number(to, at, 4, true);
    at += text.len;
    for (unsigned i = 0; i < m->nbuffers; i++) {
        put_number(to, at, 4, true);
        at += m->buffers[i].len;
    }
    add(to, &text);
    for (unsigned i = 0; i < m->nbuffers; i++)
        add(to, &m->buffers[i]);
}

struct blob *jupyter_write(struct jupyter_out *m, bool v1, bool *ret_binary) {
    struct buf to = BUF_INIT;
    *ret_binary = v1 || m->nbuffers;
    if (m->frames[v1])
        return m->frames[v1];
    if (v1)
        write_v1(m, &to);
    else if (m->nbuffers)
        write_old(m, &to);
    else
        write_text(m, &to);
    m->frames[v1] = blob_take(&to);
    return m->frames[v1];
}
