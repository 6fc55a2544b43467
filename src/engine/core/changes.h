#pragma once
/* The list of files that init found in a workspace: records u64 size, u32 length of the path, the
 * path. Init is ours, but what it lists was named by hostile code. */

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct change {
    uint64_t size;
    char *path; /* owned, no NUL inside, relative and without .. */
};

struct changes {
    struct change *items; /* owned */
    unsigned n;
};

int changes_parse(const uint8_t *data, size_t len, unsigned most, struct changes *ret,
                  struct err *e);
void changes_done(struct changes *c);
