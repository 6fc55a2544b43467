/* See buf.h. */

#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void out_of_memory(void) {
    static const char text[] = "cloche: out of memory\n";
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    abort();
}

void *xmalloc(size_t size) {
    void *p = malloc(size ? size : 1);
    if (!p)
        out_of_memory();
    return p;
}

void *xcalloc(size_t n, size_t size) {
    void *p = calloc(n ? n : 1, size ? size : 1);
    if (!p)
        out_of_memory();
    return p;
}

void *xrealloc(void *p, size_t size) {
    p = realloc(p, size ? size : 1);
    if (!p)
        out_of_memory();
    return p;
}

char *xstrdup(const char *s) {
    size_t len = strlen(s) + 1;
    return memcpy(xmalloc(len), s, len);
}

char *xstrndup(const char *s, size_t len) {
    len = strnlen(s, len);
    char *copy = xmalloc(len + 1);
    memcpy(copy, s, len);
    copy[len] = '\0';
    return copy;
}

void buf_done(struct buf *b) {
    if (b->cap)
        free(b->data);
    *b = (struct buf)BUF_INIT;
}

void buf_clear(struct buf *b) {
    b->len = 0;
    if (b->cap)
        b->data[0] = '\0';
}

char *buf_reserve(struct buf *b, size_t len) {
    size_t need;
    if (__builtin_add_overflow(b->len, len, &need) || __builtin_add_overflow(need, 1, &need))
        out_of_memory();
    if (need > b->cap) {
        size_t cap = b->cap ? b->cap : 64;
        while (cap < need)
            cap *= 2;
        b->data = xrealloc(b->cap ? b->data : NULL, cap);
        b->cap = cap;
    }
    return b->data + b->len;
}

void buf_commit(struct buf *b, size_t len) {
    b->len += len;
    b->data[b->len] = '\0';
}

void buf_drop(struct buf *b, size_t len) {
    if (len >= b->len) {
        buf_clear(b);
        return;
    }
    memmove(b->data, b->data + len, b->len - len + 1);
    b->len -= len;
}

void buf_add(struct buf *b, const void *data, size_t len) {
    char *to = buf_reserve(b, len);
    if (len)
        memcpy(to, data, len);
    buf_commit(b, len);
}

void buf_adds(struct buf *b, const char *text) {
    buf_add(b, text, strlen(text));
}

void buf_addc(struct buf *b, char c) {
    buf_add(b, &c, 1);
}

void buf_addf(struct buf *b, const char *fmt, ...) {
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n > 0) {
        vsnprintf(buf_reserve(b, (size_t)n), (size_t)n + 1, fmt, again);
        buf_commit(b, (size_t)n);
    }
    va_end(again);
}

char *buf_take(struct buf *b) {
    char *s = b->cap ? b->data : xstrdup("");
    *b = (struct buf)BUF_INIT;
    return s;
}
