#pragma once
/* What init tells of a file: one record, in the answers to I_STAT and I_LIST. Init is ours, but
 * what it tells of was named by hostile code. */

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

#define ENTRY_PATH_MAX  4095
#define ENTRY_DEPTH_MAX 64 /* names in a path: each costs time that no sandbox pays for */

enum entry_type { ENTRY_FILE, ENTRY_DIRECTORY, ENTRY_SYMLINK, ENTRY_OTHER, ENTRY_TYPES_ };

struct entry {
    enum entry_type type;
    bool deep; /* a directory that a listing did not enter, since it lies too deep */
    uint32_t mode;
    uint64_t size, mtime_ns, ino;
    const char *path, *target; /* borrowed; target is "" but for a symlink */
};

/* Names in a path; "." is none. */
unsigned entry_depth(const char *path);

void entry_put(struct buf *to, const struct entry *f);
/* The record at *at, which moves behind it; its strings lie in it. False when there is none. */
bool entry_get(const uint8_t **at, const uint8_t *end, struct entry *ret);
