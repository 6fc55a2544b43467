#pragma once
/* FNV-1a, for tables: not for anything that must be hard to guess. */

#include <stdint.h>

static inline uint64_t hash_text(const char *text) {
    uint64_t h = 0xcbf29ce484222325u;
    while (*text)
        h = (h ^ (uint8_t)*text++) * 0x100000001b3u;
    return h;
}
