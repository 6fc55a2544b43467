#pragma once
/* A slot's control group as the server uses it: limits in, usage out, through descriptors that the
 * warden opened. One per slot, kept from sandbox to sandbox. */

#include "base/err.h"
#include "sandbox/knobs.h"

#include <stdbool.h>
#include <stdint.h>

struct knobs {
    int fds[KNOBS_];              /* owned; all -1 where there are no control groups */
    uint64_t oom_seen, pids_seen; /* event counters only grow: what was there before this sandbox */
    uint64_t cpu_base_us;
    uint64_t oom_below; /* kills in groups below, which v2 counts here as well */
};

struct knobs_usage {
    uint64_t cpu_us, memory_peak;
    bool out_of_memory, out_of_pids;
};

void knobs_init(struct knobs *k);
void knobs_done(struct knobs *k);
bool knobs_there(const struct knobs *k);
int knobs_set_memory(const struct knobs *k, uint64_t bytes, struct err *e);
int knobs_set_pids(const struct knobs *k, uint32_t pids, struct err *e);
int knobs_set_cpus(const struct knobs *k, uint32_t percent, struct err *e);
int knobs_freeze(const struct knobs *k, bool freeze, struct err *e);
/* The counters from here on belong to one execution. */
void knobs_begin(struct knobs *k);
uint64_t knobs_cpu_us(const struct knobs *k);
uint64_t knobs_memory_peak(const struct knobs *k);
uint64_t knobs_memory(const struct knobs *k); /* now */
/* Of that what is in no file; *ret_shared: what is on tmpfs, or shared memory. */
uint64_t knobs_anonymous(const struct knobs *k, uint64_t *ret_shared);
uint64_t knobs_pids(const struct knobs *k);  /* processes and threads, now */
uint64_t knobs_kills(const struct knobs *k); /* for want of memory; those below apart */
uint64_t knobs_pids_refused(const struct knobs *k);
/* Since the last knobs_usage. */
bool knobs_ran_out_of_memory(const struct knobs *k);
struct knobs_usage knobs_usage(struct knobs *k);
