/* See plain.h. */

#include "api/mcp/plain.h"

#include <stdbool.h>

#define ESC 0x1b

static bool is_between(char c, int from, int to) {
    return (unsigned char)c >= from && (unsigned char)c <= to;
}

/* Behind the text of a sequence that ends with BEL or with ESC \. */
static const char *after_string(const char *at, const char *end) {
    for (const char *from = at; at < end && at - from < 4096; at++) {
        if (*at == '\a')
            return at + 1;
        if (*at == ESC && at + 1 < end && at[1] == '\\')
            return at + 2;
        if (*at == '\n')
            return at; /* nothing that a terminal was meant to read */
    }
    return at;
}

/* Behind the escape sequence at `at` (ECMA-48). */
static const char *after_escape(const char *at, const char *end) {
    at++;
    if (at == end)
        return at;
    char kind = *at++;
    if (kind == '[') {
        while (at < end && is_between(*at, 0x20, 0x3f))
            at++;
        return at < end && is_between(*at, 0x40, 0x7e) ? at + 1 : at;
    }
    if (kind == ']' || kind == 'P' || kind == 'X' || kind == '^' || kind == '_')
        return after_string(at, end);
    while (is_between(kind, 0x20, 0x2f) && at < end)
        kind = *at++;
    return is_between(kind, 0x30, 0x7e) ? at : at - 1;
}

static void cut_to(struct buf *to, size_t len) {
    to->len = len;
    if (to->cap)
        to->data[len] = '\0';
}

/* The last character of the line. */
static void take_back(struct buf *to, size_t line) {
    size_t len = to->len;
    while (len > line && ((unsigned char)to->data[len - 1] & 0xc0) == 0x80)
        len--;
    cut_to(to, len > line ? len - 1 : len);
}

/* Whether nothing is written over the line: it ends here, or the text does. */
static bool stays(const char *at, const char *end) {
    while (at < end && *at == '\r')
        at++;
    return at == end || *at == '\n';
}

void plain_add(struct buf *to, const char *text, size_t len) {
    size_t line = to->len; /* where the line begins */
    for (const char *at = text, *end = text + len; at < end;) {
        const char *from = at;
        while (at < end && (unsigned char)*at >= ' ' && *at != 0x7f)
            at++;
        buf_add(to, from, (size_t)(at - from));
        if (at == end)
            return;
        char c = *at++;
        if (c == '\n' || c == '\t') {
            buf_addc(to, c);
            line = c == '\n' ? to->len : line;
        } else if (c == ESC) {
            at = after_escape(at - 1, end);
        } else if (c == '\b') {
            take_back(to, line);
        } else if (c != '\r') {
            buf_addf(to, "\\x%02x", (unsigned char)c);
        } else if (!stays(at, end)) {
            cut_to(to, line);
        }
    }
}
