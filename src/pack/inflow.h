#pragma once
/* The bytes of an archive, out of its gzip if it is in one. For pack/ only. */

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <zlib.h>

#define INFLOW_BLOCK 65536

struct inflow {
    int fd; /* borrowed */
    off_t at;
    uint64_t work, most; /* bytes that came and went, and how many may */
    z_stream zip;
    bool has_zip, between; /* members of the gzip */
    uint8_t packed[INFLOW_BLOCK], plain[INFLOW_BLOCK];
};

int inflow_begin(struct inflow *f, int fd, struct err *e);
void inflow_end(struct inflow *f);
/* What is asked for until the next call of this may take so many bytes to be had. */
void inflow_allow(struct inflow *f, uint64_t bytes);
/* The next bytes of the archive; 0 at the end; -1 and *ret_why. */
ssize_t inflow_read(struct inflow *f, const void **ret, const char **ret_why);
