#pragma once
/* Values of MCP's headers, for both directions: what is not plain ASCII, or has white space at an
 * end, travels as =?base64?…?=. */

#include "base/buf.h"

#include <stdbool.h>

#define MCP_HEADER_MAX 8192 /* bytes of a value */

/* The meaning of a header's value, without the white space around it. False: what looks encoded is
 * not base64 of UTF-8, or it is too long. */
bool mcp_header_decode(const char *value, struct buf *to);
/* The value that travels. */
void mcp_header_encode(const char *text, size_t len, struct buf *to);
/* Whether the header means exactly that text. */
bool mcp_header_is(const char *value, const char *text, size_t len);
