#pragma once
/* Lines for the client, on stdout. They wait here while it does not read. */

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct out {
    struct buf lines;
    size_t written;
    bool closed; /* nobody reads any more */
};
#define OUT_INIT                                                                                   \
    { .lines = BUF_INIT }
#define OUT_FULL (8u << 20) /* while more waits, nothing more is taken from the server */

/* One message; newlines in it become blanks, which is the same to JSON: within strings they are
 * escaped. */
void out_line(struct out *o, const char *text, size_t len);
size_t out_waits(const struct out *o);
/* As much as stdout takes without blocking, once poll says that it takes any. */
int out_write(struct out *o, struct err *e);
void out_done(struct out *o);
