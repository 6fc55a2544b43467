#pragma once
/* How long things took: counts in fixed buckets, from a millisecond to half a minute. */

#include <stdint.h>

#define HISTOGRAM_BUCKETS 12

/* Upper bounds in seconds; what is above the last is counted in one bucket more. */
extern const double histogram_bounds[HISTOGRAM_BUCKETS];

struct histogram {
    uint64_t buckets[HISTOGRAM_BUCKETS + 1];
    uint64_t count;
    double sum, longest;
};

void histogram_add(struct histogram *h, double seconds);
