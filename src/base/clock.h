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
#define NS_PER_MS 1000000u
static inline uint64_t ms_to_ns(uint64_t ms) {
    return ms * NS_PER_MS;
}
static inline uint64_t ns_to_ms(uint64_t ns) {
    return ns / NS_PER_MS;
}
static inline uint64_t now_ms(void) {
    return ns_to_ms(now_ns());
}
