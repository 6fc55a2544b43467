#pragma once
/* An archive, in. */

#include "pack/pack.h"

struct unpacker;
/* From the start of a regular file, borrowed. */
int unpacker_new(int fd, struct unpacker **ret, struct err *e);
/* 1 and an entry, whose strings live until the next call; 0 at the end; -1 with kind "bad_archive".
 * Whatever could lead out of a directory or is no file, directory or symlink is such an error; so
 * is what looks like a bomb. */
int unpacker_next(struct unpacker *u, struct pack_entry *ret, struct err *e);
/* 1 and the entry's next bytes, which begin at *ret_at of it: bytes left out are zero. 0 at its
 * end.
 */
int unpacker_data(struct unpacker *u, const void **ret, size_t *ret_len, uint64_t *ret_at,
                  struct err *e);
void unpacker_free(struct unpacker *u);
