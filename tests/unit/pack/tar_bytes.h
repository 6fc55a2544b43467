#pragma once
/* Tars by hand, as others would not write them. */

#include "base/buf.h"

#include <stdio.h>
#include <string.h>

#define TAR_END 1024 /* zeros */

static inline void tar_sum(char h[512]) {
    unsigned sum = 0;
    memset(h + 148, ' ', 8); /* in place of the checksum */
    for (int i = 0; i < 512; i++)
        sum += (unsigned char)h[i];
    snprintf(h + 148, 8, "%06o", sum);
}

/* A header of ustar's without its sum. */
static inline void tar_head(char h[512], const char *name, char type, const char *link,
                            unsigned long size) {
    memset(h, 0, 512);
    snprintf(h, 100, "%s", name);
    snprintf(h + 100, 8, "0000644");
    snprintf(h + 124, 12, "%011lo", size % (1ul << 33));
    snprintf(h + 136, 12, "00000000000");
    h[156] = type;
    snprintf(h + 157, 100, "%s", link);
    snprintf(h + 257, 6, "ustar");
    h[263] = h[264] = '0';
}

static inline void tar_add(struct buf *b, const char *name, char type, const char *link,
                           const void *content, size_t len) {
    static const char zero[512];
    char h[512];
    tar_head(h, name, type, link, len);
    tar_sum(h);
    buf_add(b, h, sizeof h);
    buf_add(b, content, len);
    buf_add(b, zero, -len % 512);
}

static inline void tar_end(struct buf *b) {
    static const char zero[TAR_END];
    buf_add(b, zero, sizeof zero);
}
