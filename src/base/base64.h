#pragma once
/* Base64 (RFC 4648, section 4): with padding, in one piece. */

#include "base/buf.h"

#include <stdbool.h>

void base64_encode(struct buf *to, const void *data, size_t len);
/* Strict but for white space, which is skipped: false for any other character and for padding that
 * is missing or too much, and then nothing is added. */
bool base64_decode(struct buf *to, const char *text, size_t len);
