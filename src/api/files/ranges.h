#pragma once
/* The Range header of a download. */

#include <stdint.h>

enum range { RANGE_ALL, RANGE_PART, RANGE_NONE };

struct range_part {
    uint64_t from, len;
};

/* RANGE_PART: one range of bytes, cut to the size. RANGE_NONE: it is beyond the end. RANGE_ALL:
 * whatever is not understood, and several ranges at once, which RFC 9110 lets a server answer with
 * the whole. */
enum range range_read(const char *text, uint64_t size, struct range_part *ret);
