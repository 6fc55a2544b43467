#pragma once
/* What a kernel said, read: its large parts are text already, as the API passes them on, and what
 * is left is small. For the engine only.
 *
 * SECURITY: the kernel is hostile. Everything is bounded here, and a message of any size may be
 * read beside the loop: nothing here touches what the loop has. */

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>

struct json_t;

#define SAID_MAX       (20u << 20)  /* bytes; see MAX_DATA in py/cell/bundles.py */
#define SAID_MIMES_MAX 200          /* types of one display */
#define SAID_ERROR_MAX (256u << 10) /* bytes of an exception's text, and of its traceback */

struct said {
    struct json_t *rest; /* owned: the members that are short */
    /* A display's or a result's `{"data":{…},"metadata":{…}`, which is still open; an error; the
     * value or result that somebody else knows the meaning of. Empty when there is none. */
    struct buf text;
    size_t plain_at, plain_len; /* in `text`: the JSON of its text/plain; or 0 */
    bool cut;                   /* of `text` something is missing */
};

/* 0, or -1 with an error when it is nothing that a kernel says. */
int said_read(const char *json, size_t len, struct said *ret, struct err *e);
void said_done(struct said *s);
const char *said_str(const struct said *s, const char *name); /* or NULL */
bool said_true(const struct said *s, const char *name);
