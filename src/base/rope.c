/* See rope.h. */

#include "base/rope.h"

#include "base/window.h"

#include <stdlib.h>
#include <string.h>

#define SMALL 4096u /* bytes of text that are escaped at once, and not worth a piece */
#define STEP  4096u /* bytes of text between two looks at how much has come out: up to six times */

struct blob *blob_take(struct buf *b) {
    struct blob *to = xcalloc(1, sizeof *to);
    to->refs = 1;
    to->bytes = *b;
    *b = (struct buf)BUF_INIT;
    return to;
}

struct blob *blob_ref(struct blob *b) {
    b->refs++;
    return b;
}

void blob_unref(struct blob *b) {
    if (!b || --b->refs > 0)
        return;
    buf_done(&b->bytes);
    free(b);
}

void blob_meter(struct blob *b, size_t *meter, bool more) {
    if (more && b->metered++ == 0)
        *meter += b->bytes.len;
    else if (!more && --b->metered == 0)
        *meter -= b->bytes.len;
}

static void drop_first(struct rope *r) {
    struct rope_piece *p = &r->pieces[r->first];
    r->bytes -= p->len;
    if (r->meter)
        blob_meter(p->of, r->meter, false);
    blob_unref(p->of);
    r->first++;
    r->n--;
    if (r->n == 0)
        r->first = 0;
}

void rope_done(struct rope *r) {
    while (r->n)
        drop_first(r);
    free(r->pieces);
    *r = (struct rope){.meter = r->meter};
}

/* Takes the reference. */
static void add_piece(struct rope *r, const struct rope_piece *p) {
    r->pieces = window_room(r->pieces, sizeof *r->pieces, &r->first, r->n, &r->cap);
    r->pieces[r->first + r->n++] = *p;
    r->bytes += p->len;
    if (r->meter)
        blob_meter(p->of, r->meter, true);
}

void rope_add(struct rope *r, struct buf *literal) {
    if (literal->len == 0)
        return;
    struct blob *b = blob_take(literal);
    add_piece(r, &(struct rope_piece){.of = b, .len = b->bytes.len});
}

void rope_add_part(struct rope *r, struct blob *of, size_t from, size_t len) {
    if (len > 0)
        add_piece(r, &(struct rope_piece){.of = blob_ref(of), .from = from, .len = len});
}

void rope_adds(struct rope *r, const char *literal) {
    struct buf b = BUF_INIT;
    buf_adds(&b, literal);
    rope_add(r, &b);
}

void rope_add_rope(struct rope *r, const struct rope *from) {
    for (size_t i = 0; i < from->n; i++) {
        struct rope_piece p = from->pieces[from->first + i];
        blob_ref(p.of);
        add_piece(r, &p);
    }
}

void rope_add_text(struct rope *r, struct blob *of, size_t from, size_t len) {
    if (len == 0)
        return;
    add_piece(r,
              &(struct rope_piece){.of = blob_ref(of), .from = from, .len = len, .is_text = true});
}

void rope_adds_text(struct rope *r, const char *text) {
    struct buf b = BUF_INIT;
    buf_adds(&b, text);
    struct blob *of = blob_take(&b);
    rope_add_text(r, of, 0, of->bytes.len);
    blob_unref(of);
}

static void add_small(struct buf *to, const struct rope *texts) {
    for (size_t i = 0; i < texts->n; i++) {
        const struct rope_piece *p = &texts->pieces[texts->first + i];
        json_escape(to, p->of->bytes.data + p->from, p->len);
    }
}

void rope_key_texts(struct rope *r, struct jw *j, const char *key, const struct rope *texts) {
    jw_key(j, key);
    buf_addc(j->to, '"');
    if (texts->bytes <= SMALL) {
        add_small(j->to, texts);
    } else {
        rope_add(r, j->to);
        rope_add_rope(r, texts);
    }
    buf_addc(j->to, '"');
    j->comma = true;
}

void rope_key_text(struct rope *r, struct jw *j, const char *key, struct blob *of) {
    AUTO_ROPE texts = ROPE_INIT;
    rope_add_text(&texts, of, 0, of->bytes.len);
    rope_key_texts(r, j, key, &texts);
}

void rope_key_json(struct rope *r, struct jw *j, const char *key, const struct rope *json) {
    jw_key(j, key);
    rope_add(r, j->to);
    rope_add_rope(r, json);
    j->comma = true;
}

static bool is_inside(char c) {
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* A character has at most three bytes after its first: where more come together they are none, and
 * any place will do. */
size_t rope_cut(const char *text, size_t len, size_t want) {
    if (want >= len)
        return len;
    for (size_t back = 0; back <= 3 && back < want; back++) {
        if (!is_inside(text[want - back]))
            return want - back;
    }
    return want;
}

static void shorten(struct rope *r, size_t n) {
    struct rope_piece *p = &r->pieces[r->first];
    p->from += n;
    p->len -= n;
    r->bytes -= n;
    if (p->len == 0)
        drop_first(r);
}

void rope_skip(struct rope *r, size_t bytes) {
    shorten(r, bytes);
}

bool rope_read(struct rope *r, size_t most, struct buf *to) {
    size_t full = to->len + most;
    while (r->n > 0 && to->len < full) {
        struct rope_piece *p = &r->pieces[r->first];
        const char *at = p->of->bytes.data + p->from;
        size_t n;
        if (p->is_text) {
            n = rope_cut(at, p->len, STEP);
            json_escape(to, at, n);
        } else {
            n = p->len < full - to->len ? p->len : full - to->len;
            buf_add(to, at, n);
        }
        shorten(r, n);
    }
    return r->n > 0;
}
