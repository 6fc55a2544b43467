#pragma once
/* tar.gz, out and in, through libarchive (and zlib). Knows nothing of sandboxes and HTTP, and does
 * little at a time: its callers give it a slice, serve others, and come back. */

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pack_type { PACK_FILE, PACK_DIRECTORY, PACK_SYMLINK };

struct pack_entry {
    enum pack_type type;
    const char *path;   /* borrowed: relative, without ".." */
    const char *target; /* borrowed: of a symlink; anything */
    uint32_t mode;
    uint64_t size, mtime_ns;
};

/* ---- out: an entry, its bytes, the next ---- */
struct packer;
/* `sink` gets what is to be sent, as it comes. */
int packer_new(void (*sink)(void *arg, const void *data, size_t len), void *arg,
               struct packer **ret, struct err *e);
int packer_entry(struct packer *p, const struct pack_entry *f, struct err *e);
/* Of the last entry; never more than its size. */
int packer_data(struct packer *p, const void *data, size_t len, struct err *e);
int packer_end(struct packer *p, struct err *e);
void packer_free(struct packer *p);

/* ---- in ---- */
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
