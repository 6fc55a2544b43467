#pragma once
/* A growing byte string. `data` is never NULL and always NUL-terminated after the last byte; memory
 * that cannot be had ends the process (log and abort), since nothing here holds more than its caps.
 */

#include <stdarg.h>
#include <stddef.h>

struct buf {
    char *data;
    size_t len, cap;
};

#define BUF_INIT                                                                                   \
    { .data = (char *)"" }
#define AUTO_BUF __attribute__((cleanup(buf_done))) struct buf

void buf_done(struct buf *b);
void buf_clear(struct buf *b);
void buf_add(struct buf *b, const void *data, size_t len);
void buf_adds(struct buf *b, const char *text);
void buf_addc(struct buf *b, char c);
void buf_addf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Room for `len` more bytes; returns where they go. The caller then adds what it wrote to b->len
 * and calls nothing else before; buf_commit does that and sets the NUL. */
char *buf_reserve(struct buf *b, size_t len);
void buf_commit(struct buf *b, size_t len);
/* Removes the first `len` bytes. */
void buf_drop(struct buf *b, size_t len);
/* The string, owned by the caller (free()); the buffer is empty again. */
char *buf_take(struct buf *b);

void *xmalloc(size_t size);
void *xcalloc(size_t n, size_t size);
void *xrealloc(void *p, size_t size);
char *xstrdup(const char *s);
/* The first `len` bytes, fewer if a NUL comes before. */
char *xstrndup(const char *s, size_t len);
