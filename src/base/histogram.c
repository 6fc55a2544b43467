/* See histogram.h. */

#include "base/histogram.h"

const double histogram_bounds[HISTOGRAM_BUCKETS] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                                    0.1,   0.25,   0.5,   1,    5,     30};

void histogram_add(struct histogram *h, double seconds) {
    unsigned i = 0;
    while (i < HISTOGRAM_BUCKETS && seconds > histogram_bounds[i])
        i++;
    h->buckets[i]++;
    h->count++;
    h->sum += seconds;
    if (seconds > h->longest)
        h->longest = seconds;
}
