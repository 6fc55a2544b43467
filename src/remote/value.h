#pragma once
/* JSON values of requests and answers. */

#include "base/buf.h"
#include "base/err.h"

struct json_t;

/* The value as text, in place of what was in `to`. */
int value_dump(const struct json_t *value, struct buf *to, struct err *e);
/* `what` names the text in the error when it is not UTF-8 without NUL bytes. */
int value_set_text(struct json_t *to, const char *key, const char *what, const char *text,
                   size_t len, struct err *e);
/* A member of an object as plain text, "" if it is none. */
const char *value_text(const struct json_t *object, const char *key);
