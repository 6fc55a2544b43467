#pragma once
/* Limits without control groups: watching, in place of enforcing.
 *
 * Where no cgroup can be used, init looks at the sandbox's processes every WATCH_MS while a limit
 * is set: their private memory above what the kernel process had when it was ready, and their CPU
 * time. A program can overshoot between two looks; doctor and the start-up message say so. */

#include "wire/messages.h"

#include <stdbool.h>

#include <stdint.h>
#include <sys/types.h>

struct watcher {
    int timer;         /* timerfd, -1 while nothing is watched */
    uint64_t baseline; /* private bytes of the kernel process when it was ready */
    uint64_t memory_max, cpu_max_us;
    uint64_t memory_peak, cpu_us, cpu_base_us;
};

struct watch_usage {
    uint64_t memory_peak, cpu_us;
};

/* Starts watching, before any user code runs; 0 is no limit. */
void watch_limits(struct watcher *w, uint32_t memory_mb, uint32_t cpu_seconds);
/* The timer fired: which limit is exceeded, if any. */
enum limit_kind watch_tick(struct watcher *w);
struct watch_usage watch_usage(struct watcher *w);
