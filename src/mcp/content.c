/* See content.h. The texts count as one: the first two thirds of what may go out are of its
 * beginning, the rest of its end. */

#include "mcp/content.h"

#include "base/json.h"
#include "base/text.h"
#include "mcp/call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct content_part *add_part(struct content *c, enum content_kind kind) {
    if (c->n == c->cap) {
        c->cap = c->cap ? 2 * c->cap : 4;
        c->parts = xrealloc(c->parts, c->cap * sizeof *c->parts);
    }
    struct content_part *p = &c->parts[c->n++];
    *p = (struct content_part){.kind = kind, .bytes = BUF_INIT};
    return p;
}

void content_text(struct content *c, const char *text, size_t len) {
    buf_add(&add_part(c, CONTENT_TEXT)->bytes, text, len);
}

static bool takes(const struct content *c, enum content_kind kind, size_t len) {
    return len / 4 * 3 <= CONTENT_IMAGE_MAX && c->bytes + len <= CONTENT_BYTES_MAX &&
           (kind != CONTENT_IMAGE || c->images < CONTENT_IMAGES_MAX);
}

void content_media(struct content *c, enum content_kind kind, const char *mime, const char *base64,
                   size_t len) {
    if (!takes(c, kind, len)) {
        AUTO_BUF note = BUF_INIT;
        buf_addf(&note, "\n[left out: %.90s of %zu bytes; an answer has %u images of 4 MiB]\n",
                 mime, len / 4 * 3, CONTENT_IMAGES_MAX);
        content_text(c, note.data, note.len);
        return;
    }
    struct content_part *p = add_part(c, kind);
    snprintf(p->mime, sizeof p->mime, "%s", mime);
    buf_add(&p->bytes, base64, len);
    c->bytes += len;
    c->images += kind == CONTENT_IMAGE;
}

void content_ready(struct content *c, struct buf *json) {
    struct content_part *p = add_part(c, CONTENT_READY);
    p->bytes = *json;
    *json = (struct buf)BUF_INIT;
}

void content_role(struct content *c, const char *role) {
    add_part(c, CONTENT_ROLE)->role = role;
}

void content_whole(struct content *c, const struct mcp_link *l) {
    struct jw j = JW_INIT(&c->whole);
    buf_clear(&c->whole);
    content_put_link(&j, l, true);
    free(c->whole_uri);
    c->whole_uri = xstrdup(l->uri);
}

void content_done(struct content *c) {
    for (unsigned i = 0; i < c->n; i++)
        buf_done(&c->parts[i].bytes);
    free(c->parts);
    buf_done(&c->whole);
    free(c->whole_uri);
    *c = (struct content)CONTENT_INIT;
}

/* ---- written ---- */

void content_put_link(struct jw *j, const struct mcp_link *l, bool is_part) {
    const char *const members[][2] = {{"uri", l->uri},
                                      {"name", l->name},
                                      {"title", l->title},
                                      {"description", l->description},
                                      {"mimeType", l->mime}};
    jw_object(j);
    if (is_part)
        jw_key_str(j, "type", "resource_link");
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (members[i][1])
            jw_key_str(j, members[i][0], members[i][1]);
    if (l->size > 0)
        jw_key_int(j, "size", l->size);
    jw_object_end(j);
}

static void put_text_part(struct jw *j, const char *text, size_t len) {
    jw_object(j);
    jw_key_str(j, "type", "text");
    jw_key(j, "text");
    jw_strn(j, text, len);
    jw_object_end(j);
}

static void put_media(struct jw *j, const struct content_part *p) {
    jw_object(j);
    jw_key_str(j, "type", p->kind == CONTENT_IMAGE ? "image" : "audio");
    jw_key(j, "data");
    jw_escaped(j, p->bytes.data, p->bytes.len);
    jw_key_str(j, "mimeType", p->mime);
    jw_object_end(j);
}

/* Ill-formed bytes count one each, as they go out. */
static size_t character(const char *text, size_t left) {
    uint32_t ignored;
    size_t n = text_char(text, left, &ignored);
    return n ? n : 1;
}

static size_t characters(const char *text, size_t len) {
    size_t n = 0;
    for (size_t at = 0; at < len; n++)
        at += character(text + at, len - at);
    return n;
}

/* Where the character with this number begins. */
static size_t offset_of(const char *text, size_t len, size_t number) {
    size_t at = 0;
    for (; number > 0 && at < len; number--)
        at += character(text + at, len - at);
    return at;
}

/* What of the texts goes out: the characters before `head` and from `tail` on. */
struct cut {
    size_t head, tail, at, most;
    bool told;
    const char *uri;
};

static void put_note(const struct cut *cut, struct buf *to) {
    buf_addf(to, "\n[... %zu characters left out of %zu%s%s ...]\n", cut->tail - cut->head,
             cut->most, cut->uri ? "; all of them: " : "", cut->uri ? cut->uri : "");
}

static void put_cut_text(struct jw *j, const struct content_part *p, struct cut *cut) {
    AUTO_BUF kept = BUF_INIT;
    const char *text = p->bytes.data;
    size_t len = p->bytes.len, n = characters(text, len), from = cut->at;
    cut->at += n;
    if (from < cut->head)
        buf_add(&kept, text, offset_of(text, len, cut->head - from));
    if (cut->at > cut->head && !cut->told) {
        cut->told = true;
        put_note(cut, &kept);
    }
    if (cut->at > cut->tail) {
        size_t at = from < cut->tail ? offset_of(text, len, cut->tail - from) : 0;
        buf_add(&kept, text + at, len - at);
    }
    if (kept.len)
        put_text_part(j, kept.data, kept.len);
}

static struct cut cut_of(const struct content *c, bool is_error) {
    size_t most = is_error ? CONTENT_ERROR_MAX : CONTENT_TEXT_MAX, all = 0;
    for (unsigned i = 0; i < c->n; i++)
        if (c->parts[i].kind == CONTENT_TEXT)
            all += characters(c->parts[i].bytes.data, c->parts[i].bytes.len);
    if (all <= most)
        return (struct cut){.head = all, .tail = all, .most = all, .told = true};
    return (struct cut){
        .head = most / 3 * 2, .tail = all - most / 3, .most = all, .uri = c->whole_uri};
}

static void put_part(struct jw *j, const struct content_part *p, struct cut *cut) {
    if (p->kind == CONTENT_TEXT && cut->head < cut->tail)
        put_cut_text(j, p, cut);
    else if (p->kind == CONTENT_TEXT)
        put_text_part(j, p->bytes.data, p->bytes.len);
    else if (p->kind == CONTENT_READY)
        jw_raw(j, p->bytes.data, p->bytes.len);
    else
        put_media(j, p);
}

void content_put(struct jw *j, const struct content *c, bool is_error, bool is_void) {
    struct cut cut = cut_of(c, is_error);
    jw_array(j);
    for (unsigned i = 0; i < c->n; i++)
        put_part(j, &c->parts[i], &cut);
    if (cut.head < cut.tail && c->whole.len)
        jw_raw(j, c->whole.data, c->whole.len);
    if (c->n == 0 && !is_void)
        put_text_part(j, "", 0);
    jw_array_end(j);
}

void content_put_messages(struct jw *j, const struct content *c) {
    struct cut cut = {0}; /* nothing is cut: each message must have its content */
    const char *role = "user";
    jw_array(j);
    for (unsigned i = 0; i < c->n; i++) {
        if (c->parts[i].kind == CONTENT_ROLE) {
            role = c->parts[i].role;
            continue;
        }
        jw_object(j);
        jw_key_str(j, "role", role);
        jw_key(j, "content");
        put_part(j, &c->parts[i], &cut);
        jw_object_end(j);
    }
    jw_array_end(j);
}
