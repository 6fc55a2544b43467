#pragma once
/* Limits without control groups: watching, in place of enforcing.
 *
 * Where no cgroup can be used, init looks at the sandbox's processes every WATCH_MS while a limit
 * is set: the memory that is theirs alone, not what they still share with their zygote, their CPU
 * time, and how many they are. A program can overshoot between two looks; doctor and the start-up
 * message say so. */

#include "init/procs.h"
#include "init/watch_cpu.h"
#include "init/watch_kernel.h"
#include "init/watch_look.h"
#include "wire/limits.h"
#include "wire/messages.h"

#include <stdint.h>
#include <sys/types.h>

/* 0 is no limit. */
struct watch_plan {
    pid_t kernel;
    bool is_live; /* the sandbox goes on after a limit, with other processes */
    struct limits limits;
    const uint8_t *network;    /* borrowed: whether there may be sockets of TCP and UDP */
    const struct procs *procs; /* borrowed */
    const pid_t *usher;        /* borrowed: a process of ours, or 0; no limit counts it */
};

/* Nothing of it counts before watch_limits; it is large, and only what is needed of it is touched.
 */
struct watcher {
    int timer;  /* timerfd, -1 while nothing is watched */
    bool is_on; /* limits are watched here: nothing else holds them */
    struct watch_plan plan;
    struct watch_look start, last; /* when the program began; the last round */
    struct watch_round round;
    uint64_t baseline;      /* what of `own` was there before the program */
    uint64_t forgivable;    /* by how much the baseline may still rise */
    uint64_t resident_seen; /* see watch.c */
    uint64_t anon;          /* by the last round, the program's */
    int64_t grown;          /* all processes since then, by what is resident */
    struct kernel_bytes held;
    uint64_t start_rest; /* what of `held` was there before */
    unsigned tasks;      /* at the last look */
    bool crowded;        /* at the last look there were too many */
    uint64_t memory_max;
    uint64_t memory_peak;
    struct cpu_account cpu;
};

struct watch_usage {
    uint64_t memory_peak, cpu_us;
};

/* Starts watching, before any user code runs. */
void watch_limits(struct watcher *w, const struct watch_plan *p);
/* Other limits, if it watches; processor time stays as it was. */
void watch_change(struct watcher *w, const struct limits *next);
/* The timer fired: which limit is exceeded, if any. All processes are to be killed then, and with a
 * one-shot the watch ends; but for LIMIT_PIDS: those that were too many are killed already. */
enum limit_kind watch_tick(struct watcher *w);
struct watch_usage watch_usage(struct watcher *w);
