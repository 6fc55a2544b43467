#pragma once
/* Counters for /metrics. */

#include "base/buf.h"
#include "base/histogram.h"

#include <stdint.h>

#define METRICS_ROUTES  64
#define METRICS_ENDS    64
#define METRICS_REFUSED 32

struct metrics {
    struct route_count {
        const char *method, *path; /* borrowed: of a route */
        int status;
        uint64_t n;
    } routes[METRICS_ROUTES * 8];
    unsigned nroutes;
    struct end_count {
        char status[24], profile[33];
        uint64_t n;
    } ends[METRICS_ENDS];
    unsigned nends;
    struct refused_count {
        const char *code; /* borrowed: a constant */
        uint64_t n;
    } refused[METRICS_REFUSED];
    unsigned nrefused;
    struct histogram request_s, wall_s, queue_s;
    uint64_t bytes_in, bytes_out;
    uint64_t passed, passed_in, passed_out; /* of those, to servers in sandboxes */
};

void metrics_request(struct metrics *m, const char *method, const char *path, int status,
                     double seconds);
void metrics_end(struct metrics *m, const char *status, const char *profile, double wall_s,
                 double queue_s);
/* A 429 or 503, by the code of its error. */
void metrics_refused(struct metrics *m, const char *code);
void metrics_write(const struct metrics *m, struct buf *to);
void metrics_histogram(struct buf *to, const char *name, const char *help,
                       const struct histogram *h);
/* One sample with its HELP and TYPE. */
void metrics_gauge(struct buf *to, const char *name, const char *help, double value);
