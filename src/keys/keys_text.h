#pragma once
/* The list of keys as JSON text. */

#include "base/buf.h"
#include "keys/keys.h"

/* Strict: unknown members, wrong types, bad hex, doubled ids or hashes and odd characters in names
 * are errors of kind "bad_keys" that say which key and which member. A limit of 0 is refused too:
 * it could be meant as "nothing at all". */
int keys_parse(const char *text, size_t len, struct keys *ret, struct err *e);
/* What keys_parse reads. */
void keys_encode(const struct keys *k, struct buf *to);
