#pragma once
/* Time: monotonic for durations and deadlines, real for stamps. */

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_ns(clockid_t id) {
    struct timespec ts;
    clock_gettime(id, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}
static inline uint64_t now_ns(void) {
    return clock_ns(CLOCK_MONOTONIC);
}
/* Processor time of the calling thread. */
static inline uint64_t thread_cpu_ns(void) {
    return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}
static inline uint64_t now_ms(void) {
    return now_ns() / 1000000u;
}
