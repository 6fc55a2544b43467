/* See cut.h. What is looked at is four times what may be shown, from either end, since escapes and
 * what plain_add() leaves out take room, too. */

#include "api/mcp/cut.h"

#include "api/mcp/plain.h"
#include "base/json_value.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

#define LOOKED   4u   /* bytes for each character that is shown */
#define NOTE     400u /* characters at most of the line on what is missing */
#define A_LITTLE 400u /* characters that are given up for the end of a line */

void cut_done(struct cut *c) {
    free(c->pieces);
    *c = (struct cut){0};
}

void cut_add(struct cut *c, const char *inside, size_t len) {
    if (len == 0)
        return;
    if ((c->n & (c->n - 1)) == 0) /* a power of two: the room is used up */
        c->pieces = xrealloc(c->pieces, (c->n ? 2 * c->n : 1) * sizeof *c->pieces);
    c->pieces[c->n++] = (struct cut_piece){inside, len};
    c->bytes += len;
}

void cut_adds(struct cut *c, const char *text) {
    cut_add(c, text, strlen(text));
}

bool cut_at_line(const struct cut *c) {
    if (c->n == 0)
        return true;
    const struct cut_piece *p = &c->pieces[c->n - 1];
    return p->len >= 2 && memcmp(p->at + p->len - 2, "\\n", 2) == 0;
}

/* ---- the ends of the pieces ---- */

static void take_front(const struct cut *c, size_t most, struct buf *plain) {
    AUTO_BUF text = BUF_INIT;
    for (size_t i = 0; i < c->n && most > 0; i++) {
        const struct cut_piece *p = &c->pieces[i];
        size_t len = json_inside_cut(p->at, p->len, most);
        json_unescape(&text, p->at, len);
        most -= len < p->len ? most : len;
    }
    plain_add(plain, text.data, text.len);
}

static void take_back(const struct cut *c, size_t most, struct buf *plain) {
    AUTO_BUF text = BUF_INIT;
    size_t i = c->n, had = 0;
    while (i > 0 && had < most)
        had += c->pieces[--i].len;
    size_t from =
        had > most && i < c->n ? json_inside_cut(c->pieces[i].at, c->pieces[i].len, had - most) : 0;
    for (; i < c->n; i++, from = 0)
        json_unescape(&text, c->pieces[i].at + from, c->pieces[i].len - from);
    plain_add(plain, text.data, text.len);
}

/* ---- the ends of the text ---- */

/* Bytes of the first `most` characters. */
static size_t first_chars(const struct buf *text, size_t most) {
    size_t at = 0;
    for (; at < text->len; at++) {
        bool is_start = ((unsigned char)text->data[at] & 0xc0) != 0x80;
        if (is_start && most-- == 0)
            break;
    }
    return at;
}

/* Where the last `most` characters begin. */
static size_t last_chars(const struct buf *text, size_t most) {
    size_t at = text->len;
    while (at > 0 && most > 0)
        most -= ((unsigned char)text->data[--at] & 0xc0) != 0x80;
    return at;
}

/* The same, but for a part of a line. */
static size_t head_of(const struct buf *text, size_t most) {
    size_t at = first_chars(text, most);
    for (size_t i = at; i > 0 && at - i < A_LITTLE; i--) {
        if (text->data[i - 1] == '\n')
            return i;
    }
    return at;
}

static size_t tail_of(const struct buf *text, size_t most) {
    size_t at = last_chars(text, most);
    const char *line = memchr(text->data + at, '\n', text->len - at);
    bool is_near = line && (size_t)(line - text->data) - at < A_LITTLE;
    return is_near ? (size_t)(line - text->data) + 1 : at;
}

static void add_note(struct buf *to, size_t missing, const char *unit, const char *rest) {
    if (to->len && to->data[to->len - 1] != '\n')
        buf_addc(to, '\n');
    buf_addf(to, "[... %zu %s left out here%s%.300s ...]\n", missing, unit, *rest ? ": " : "",
             rest);
}

static bool cut_long(const struct cut *c, size_t most, const char *rest, struct buf *to) {
    AUTO_BUF front = BUF_INIT, back = BUF_INIT;
    take_front(c, LOOKED * most, &front);
    take_back(c, LOOKED * most, &back);
    size_t half = (most - NOTE) / 2, head = head_of(&front, half), tail = tail_of(&back, half);
    buf_add(to, front.data, head);
    add_note(to, (c->bytes - head - (back.len - tail)) / 1000, "kB", rest);
    buf_add(to, back.data + tail, back.len - tail);
    return true;
}

bool cut_text(const struct cut *c, size_t most, const char *rest, struct buf *to) {
    AUTO_BUF all = BUF_INIT;
    if (c->bytes > 2 * LOOKED * most)
        return cut_long(c, most, rest, to);
    take_front(c, c->bytes, &all);
    size_t chars = text_chars(all.data, all.len);
    if (chars <= most) {
        buf_add(to, all.data, all.len);
        return false;
    }
    size_t half = (most - NOTE) / 2, head = head_of(&all, half), tail = tail_of(&all, half);
    buf_add(to, all.data, head);
    add_note(to, text_chars(all.data + head, tail - head), "characters", rest);
    buf_add(to, all.data + tail, all.len - tail);
    return true;
}
