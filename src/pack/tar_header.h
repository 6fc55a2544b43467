#pragma once
/* A header of a tar: ustar, GNU's, and the one that was before both. Pure over bytes. For pack/
 * only. */

#include <stdbool.h>
#include <stdint.h>

#define TAR_BLOCK  512
#define TAR_LATEST (1ull << 33) /* a time in seconds, so that it fits nanoseconds */

struct tar_header {
    char type; /* '0' of a file, also where that is written as NUL */
    uint32_t mode;
    int64_t size; /* of what follows; negative: that cannot be */
    uint64_t mtime_ns;
    char path[256 + 1], link[100 + 1];
};

/* Such a block is the end. */
bool tar_is_null(const uint8_t block[TAR_BLOCK]);
/* False when the checksum is not right: *ret is untouched. */
bool tar_header_read(const uint8_t block[TAR_BLOCK], struct tar_header *ret);
