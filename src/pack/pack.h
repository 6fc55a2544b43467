#pragma once
/* tar.gz, out through libarchive, and in by what is here (and zlib). Knows nothing of sandboxes and
 * HTTP, and does little at a time: its callers stop in between. What is packed or unpacked belongs
 * to one thread at a time. */

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
