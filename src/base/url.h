#pragma once
/* Percent-encoding of URLs (RFC 3986, section 2.1). */

#include "base/buf.h"

/* Letters, digits, "-._~" and the characters of `also` stay; every other byte becomes %XX. */
void url_encode(struct buf *to, const char *text, const char *also);
