#pragma once
/* ClientHellos as bytes. */

#include "base/buf.h"

void add_number(struct buf *b, unsigned width, size_t n);
void add_vector(struct buf *b, unsigned width, const struct buf *inside);
/* The extension server_name, with this name. */
void add_name(struct buf *b, const char *name, size_t len);
/* A handshake message with these extensions, `padding` bytes of another one in front of them. */
void add_hello(struct buf *to, const struct buf *extensions, size_t padding);
/* A message in records of at most so many bytes. */
void add_records(struct buf *to, const struct buf *message, size_t most);
void add_good_hello(struct buf *to, const char *name, size_t padding, size_t record);
