#pragma once
/* The single fields of a packet, for the codecs of this directory alone: everybody else uses the
 * structs of codec.h, run.h and entry.h. One `bad` flag remembers the first fault, so that a codec
 * reads or writes all fields and asks once at the end. */

#include "wire/wire.h"

void wire_put_u32(struct wire_out *o, uint32_t v);
void wire_put_u64(struct wire_out *o, uint64_t v);
void wire_put_bytes(struct wire_out *o, const void *data, size_t len);
void wire_put_str(struct wire_out *o, const char *s);
/* The first len bytes of it. */
void wire_put_strn(struct wire_out *o, const char *s, size_t len);
/* Bytes as they are, without their length. */
void wire_put_raw(struct wire_out *o, const void *data, size_t len);
void wire_put_fd(struct wire_out *o, int fd);
/* The next field came with this version: what is there so far is all that an older peer gets. */
void wire_mark(struct wire_out *o, uint16_t since);

uint32_t wire_get_u32(struct wire_in *i);
uint64_t wire_get_u64(struct wire_in *i);
/* Borrowed: lives as long as the message. NULL and 0 when the message is bad. */
const uint8_t *wire_get_bytes(struct wire_in *i, size_t *ret_len);
/* A NUL-terminated string without NULs inside, at most max bytes long; "" when bad. Borrowed. */
const char *wire_get_str(struct wire_in *i, size_t max);
/* The next descriptor, now the caller's; -1 and bad when there is none. */
int wire_take_fd(struct wire_in *i);
/* 0 if everything read so far was there and nothing is left over; otherwise -1 and why. */
int wire_end(struct wire_in *i, struct err *e);
