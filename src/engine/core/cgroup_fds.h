#pragma once
/* A slot's control group as the server uses it: limits in, usage out, through descriptors that the
 * warden opened. One per slot, kept from sandbox to sandbox. */

#include "base/err.h"
#include "sandbox/knobs.h"

#include <stdbool.h>
#include <stdint.h>

struct cgroup_fds {
    int fds[KNOBS_];              /* owned; all -1 where there are no control groups */
    uint64_t oom_seen, pids_seen; /* event counters only grow: what was there before this sandbox */
    uint64_t cpu_base_us;
    uint64_t oom_below; /* kills in groups below, which v2 counts here as well */
};

struct cgroup_usage {
    uint64_t cpu_us, memory_peak;
    bool out_of_memory, out_of_pids;
};

void cgroup_fds_init(struct cgroup_fds *k);
void cgroup_fds_done(struct cgroup_fds *k);
bool cgroup_fds_there(const struct cgroup_fds *k);
int cgroup_fds_set_memory(const struct cgroup_fds *k, uint64_t bytes, struct err *e);
int cgroup_fds_set_pids(const struct cgroup_fds *k, uint32_t pids, struct err *e);
int cgroup_fds_set_cpus(const struct cgroup_fds *k, uint32_t percent, struct err *e);
int cgroup_fds_freeze(const struct cgroup_fds *k, bool freeze, struct err *e);
/* The counters from here on belong to one execution. */
void cgroup_fds_begin(struct cgroup_fds *k);
uint64_t cgroup_fds_cpu_us(const struct cgroup_fds *k);
uint64_t cgroup_fds_memory_peak(const struct cgroup_fds *k);
uint64_t cgroup_fds_memory(const struct cgroup_fds *k); /* now */
/* Of that what is in files of disks, which the kernel can do without; *ret_shared: what is on
 * tmpfs, or shared memory. The rest is private memory and the kernel's own: sockets, page tables, …
 */
uint64_t cgroup_fds_cached(const struct cgroup_fds *k, uint64_t *ret_shared);
uint64_t cgroup_fds_pids(const struct cgroup_fds *k);  /* processes and threads, now */
uint64_t cgroup_fds_kills(const struct cgroup_fds *k); /* for want of memory; those below apart */
uint64_t cgroup_fds_pids_refused(const struct cgroup_fds *k);
/* Since the last cgroup_fds_usage. */
bool cgroup_fds_ran_out_of_memory(const struct cgroup_fds *k);
struct cgroup_usage cgroup_fds_usage(struct cgroup_fds *k);
