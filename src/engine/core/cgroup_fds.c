/* See cgroup_fds.h. The same code reads v1 and v2: a file holds either one number or "key number"
 * lines, and v1's CPU time is told by its file being one number, in nanoseconds. */

#include "engine/core/cgroup_fds.h"

#include "base/fd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_ROOM 1024

void cgroup_fds_init(struct cgroup_fds *k) {
    memset(k, 0, sizeof *k);
    for (int i = 0; i < KNOBS_; i++)
        k->fds[i] = -1;
}

void cgroup_fds_done(struct cgroup_fds *k) {
    fd_close_all(k->fds, KNOBS_);
    cgroup_fds_init(k);
}

bool cgroup_fds_there(const struct cgroup_fds *k) {
    return k->fds[KNOB_MEMORY_MAX] >= 0;
}

static int put(const struct cgroup_fds *k, enum cgroup_knob knob, const char *text, struct err *e) {
    if (!cgroup_fds_there(k))
        return 0;
    size_t len = strlen(text);
    if (pwrite(k->fds[knob], text, len, 0) != (ssize_t)len)
        return err_sys(e, "set a limit of the control group to %s", text);
    return 0;
}

/* The number behind `key` at the start of a line, or the first number when key is NULL. */
static bool find_number(const char *text, const char *key, uint64_t *ret) {
    const char *p = text;
    if (key) {
        size_t n = strlen(key);
        while (strncmp(p, key, n) != 0 || p[n] != ' ') {
            p = strchr(p, '\n');
            if (!p)
                return false;
            p++;
        }
        p += n + 1;
    }
    char *end;
    errno = 0;
    *ret = strtoull(p, &end, 10);
    return end != p && errno == 0;
}

static bool read_file(const struct cgroup_fds *k, enum cgroup_knob knob, char text[TEXT_ROOM]) {
    ssize_t n = cgroup_fds_there(k) ? pread(k->fds[knob], text, TEXT_ROOM - 1, 0) : 0;
    if (n <= 0)
        return false;
    text[n] = '\0';
    return true;
}

static uint64_t get(const struct cgroup_fds *k, enum cgroup_knob knob, const char *key) {
    char text[TEXT_ROOM];
    uint64_t v = 0;
    return read_file(k, knob, text) && find_number(text, key, &v) ? v : 0;
}

/* v1's file begins otherwise, and counts its own only. */
uint64_t cgroup_fds_kills(const struct cgroup_fds *k) {
    char text[TEXT_ROOM];
    uint64_t v = 0;
    if (!read_file(k, KNOB_MEMORY_OOM, text) || !find_number(text, "oom_kill", &v))
        return 0;
    uint64_t below = strncmp(text, "low ", 4) == 0 ? k->oom_below : 0;
    return v > below ? v - below : 0;
}

int cgroup_fds_set_memory(const struct cgroup_fds *k, uint64_t bytes, struct err *e) {
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)bytes);
    return put(k, KNOB_MEMORY_MAX, text, e);
}

int cgroup_fds_set_pids(const struct cgroup_fds *k, uint32_t pids, struct err *e) {
    char text[16];
    snprintf(text, sizeof text, "%u", pids);
    return put(k, KNOB_PIDS_MAX, text, e);
}

/* v2's cpu.max takes "quota period"; v1's cpu.cfs_quota_us the quota alone (its period is 100 ms).
 * v2 accepts a lone quota too and keeps the period, which is 100 ms unless someone changed it. */
int cgroup_fds_set_cpus(const struct cgroup_fds *k, uint32_t percent, struct err *e) {
    char text[24];
    snprintf(text, sizeof text, "%u", percent * 1000);
    return put(k, KNOB_CPU_MAX, text, e);
}

/* Which version it is shows in what the file says now. */
int cgroup_fds_freeze(const struct cgroup_fds *k, bool freeze, struct err *e) {
    char now[16] = "";
    if (cgroup_fds_there(k) && pread(k->fds[KNOB_FREEZE], now, sizeof now - 1, 0) < 0)
        return err_sys(e, "read the freezer");
    bool v2 = now[0] == '0' || now[0] == '1';
    if (put(k, KNOB_FREEZE, v2 ? (freeze ? "1" : "0") : freeze ? "FROZEN" : "THAWED", e) < 0)
        return err_user(e, "cannot_pause", "this machine has no freezer for sandboxes");
    return 0;
}

static uint64_t cpu_total_us(const struct cgroup_fds *k) {
    char text[TEXT_ROOM];
    uint64_t usec = 0, nsec = 0;
    if (read_file(k, KNOB_CPU_USAGE, text) && !find_number(text, "usage_usec", &usec))
        find_number(text, NULL, &nsec);
    return usec + nsec / 1000;
}

void cgroup_fds_begin(struct cgroup_fds *k) {
    k->cpu_base_us = cpu_total_us(k);
}

uint64_t cgroup_fds_cpu_us(const struct cgroup_fds *k) {
    uint64_t now = cpu_total_us(k);
    return now > k->cpu_base_us ? now - k->cpu_base_us : 0;
}

uint64_t cgroup_fds_memory_peak(const struct cgroup_fds *k) {
    return get(k, KNOB_MEMORY_PEAK, NULL);
}

uint64_t cgroup_fds_memory(const struct cgroup_fds *k) {
    return get(k, KNOB_MEMORY_USAGE, NULL);
}

/* v1 tells its own and, below, with all groups in it. */
uint64_t cgroup_fds_cached(const struct cgroup_fds *k, uint64_t *ret_shared) {
    char text[8192];
    uint64_t active = 0, inactive = 0;
    *ret_shared = 0;
    ssize_t n = cgroup_fds_there(k) ? pread(k->fds[KNOB_MEMORY_STAT], text, sizeof text - 1, 0) : 0;
    if (n <= 0)
        return 0;
    text[n] = '\0';
    bool v1 = find_number(text, "total_shmem", ret_shared);
    if (!v1)
        find_number(text, "shmem", ret_shared);
    find_number(text, v1 ? "total_active_file" : "active_file", &active);
    find_number(text, v1 ? "total_inactive_file" : "inactive_file", &inactive);
    return active + inactive;
}

uint64_t cgroup_fds_pids(const struct cgroup_fds *k) {
    return get(k, KNOB_PIDS_USAGE, NULL);
}

uint64_t cgroup_fds_pids_refused(const struct cgroup_fds *k) {
    return get(k, KNOB_PIDS_EVENTS, "max");
}

bool cgroup_fds_ran_out_of_memory(const struct cgroup_fds *k) {
    return cgroup_fds_kills(k) > k->oom_seen;
}

struct cgroup_usage cgroup_fds_usage(struct cgroup_fds *k) {
    struct cgroup_usage u = {.cpu_us = cgroup_fds_cpu_us(k),
                             .memory_peak = cgroup_fds_memory_peak(k)};
    uint64_t oom = cgroup_fds_kills(k), pids = cgroup_fds_pids_refused(k);
    u.out_of_memory = oom > k->oom_seen;
    u.out_of_pids = pids > k->pids_seen;
    k->oom_seen = oom;
    k->pids_seen = pids;
    return u;
}
