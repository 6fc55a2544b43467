/* cgroup v1: every controller (or few together) has a tree of its own, and a slot is a directory in
 * each.
 *
 * Memory and swap. v1 has two limits, memory and memory+swap, and the second may never be below the
 * first, so that setting both takes two writes whose order depends on the direction. The server
 * sets a program's limit through one descriptor; therefore memory+swap stays at its default,
 * unlimited, and swappiness is 0 instead: a group at its limit then never swaps, it is out of
 * memory. What this gives up: when the whole machine runs out of page cache, the kernel may still
 * swap such pages out, and they then no longer count.
 *
 * Joining goes through `tasks`, not cgroup.procs: a thread that moves itself need not take the lock
 * that holds up every fork on the machine. On an idle machine that lock costs a grace period
 * (measured: nine in ten joins 0.04 ms instead of 12 ms), and a child fresh from fork has one
 * thread.
 *
 * Nothing can be delegated to an ordinary user here: these groups need root. */

#include "sandbox/cgroup_v1.h"

#include "base/fd.h"
#include "sandbox/cgroup_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define SOCKET_BYTES  "33554432"
#define CPU_PERIOD_US 100000u /* the kernel's default, which we leave */

static int v1_find(const struct cgroup_places *p, struct cgroup_root *r, struct err *e) {
    unsigned found = 0;
    for (unsigned i = 0; i < p->nv1; i++)
        found |= p->v1[i].roles;
    char missing[64];
    if ((found & ROLES_V1) != ROLES_V1)
        return err_set(e, ENODEV, "no cgroup v1 hierarchy is mounted for: %s",
                       cgroup_roles_format(ROLES_V1 & ~found, missing, sizeof missing));
    for (unsigned i = 0; i < p->nv1; i++) {
        int fd = open(p->v1[i].path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
            return err_sys(e, "open %s", p->v1[i].path);
        r->parents[r->ndirs] = fd;
        r->roles[r->ndirs++] = p->v1[i].roles;
        if (p->v1[i].roles & ROLE_MEMORY)
            snprintf(r->where, sizeof r->where, "%.*s", (int)sizeof r->where - 1, p->v1[i].path);
    }
    return 0;
}

static int v1_enable(struct cgroup_root *r, struct err *e) {
    (void)r, (void)e;
    return 0;
}

static void v1_disable(struct cgroup_root *r) {
    (void)r;
}

static void v1_inherit(const struct cgroup_root *r, int dead) {
    (void)r, (void)dead;
}

/* Socket buffers are not part of v1's memory limit: without a limit of their own they are not
 * counted at all (seen: 747 MB of them in a sandbox of 32 MB). Later kernels may drop the file. */
static int v1_prepare(const struct cgroup_slot *s, struct err *e) {
    for (unsigned i = 0; i < s->nprocs; i++) {
        if (file_write_at(s->dirs[i], "memory.swappiness", "0", e) < 0 && e->code != ENOENT)
            return -1;
        if (file_write_at(s->dirs[i], "memory.kmem.tcp.limit_in_bytes", SOCKET_BYTES, e) < 0 &&
            e->code != ENOENT && e->code != EOPNOTSUPP)
            return -1;
    }
    return 0;
}

/* Before Linux 5.11 a group was not always counted in the one above. */
static int v1_split(const struct cgroup_root *r, struct cgroup_slot *s, struct err *e) {
    for (unsigned i = 0; i < s->nprocs; i++)
        if (r->roles[i] & ROLE_MEMORY &&
            file_write_at(s->dirs[i], "memory.use_hierarchy", "1", e) < 0 && e->code != ENOENT)
            return -1;
    return 0;
}

/* A removed group counts for half a second more, and one that has a larger share than the group
 * above is to have keeps that from getting it (EINVAL). */
static void v1_let_go(const struct cgroup_slot *sub) {
    struct err e;
    (void)cgroup_knob_write(sub, KNOB_CPU_MAX, "-1", &e);
}

static int v1_limit(const struct cgroup_slot *s, const struct cgroup_limits *l, struct err *e) {
    uint64_t cpu_us = (uint64_t)l->cpus_percent * CPU_PERIOD_US / 100;
    if (cgroup_knob_write_number(s, KNOB_MEMORY_MAX, l->memory_bytes, e) < 0 ||
        cgroup_knob_write_number(s, KNOB_PIDS_MAX, l->pids, e) < 0)
        return -1;
    if (l->cpus_percent && cgroup_knob_write_number(s, KNOB_CPU_MAX, cpu_us, e) == 0)
        return 0;
    /* v1 refuses (EINVAL) more than a group above us has; "no limit of its own" gives just that. */
    if (l->cpus_percent && e->code != EINVAL)
        return -1;
    return cgroup_knob_write(s, KNOB_CPU_MAX, "-1", e);
}

static bool v1_restart_peak(const struct cgroup_slot *s) {
    struct err e;
    return cgroup_knob_write(s, KNOB_MEMORY_PEAK, "0", &e) == 0;
}

const struct cgroup_ops cgroup_v1_ops = {
    .knobs =
        {
            [KNOB_MEMORY_MAX] = {ROLE_MEMORY, "memory.limit_in_bytes", O_RDWR},
            [KNOB_MEMORY_PEAK] = {ROLE_MEMORY, "memory.max_usage_in_bytes", O_RDWR},
            [KNOB_MEMORY_USAGE] = {ROLE_MEMORY, "memory.usage_in_bytes", O_RDONLY},
            [KNOB_MEMORY_STAT] = {ROLE_MEMORY, "memory.stat", O_RDONLY},
            [KNOB_MEMORY_OOM] = {ROLE_MEMORY, "memory.oom_control", O_RDONLY},
            [KNOB_CPU_MAX] = {ROLE_CPU, "cpu.cfs_quota_us", O_RDWR},
            [KNOB_CPU_USAGE] = {ROLE_CPUACCT, "cpuacct.usage", O_RDONLY},
            [KNOB_PIDS_MAX] = {ROLE_PIDS, "pids.max", O_RDWR},
            [KNOB_PIDS_EVENTS] = {ROLE_PIDS, "pids.events", O_RDONLY},
            [KNOB_PIDS_USAGE] = {ROLE_PIDS, "pids.current", O_RDONLY},
            [KNOB_FREEZE] = {ROLE_FREEZER, "freezer.state", O_RDWR},
        },
    .join = "tasks",
    .file_stat = "cache",
    .shrink = {"memory.force_empty", "0"},
    .find = v1_find,
    .enable = v1_enable,
    .disable = v1_disable,
    .inherit = v1_inherit,
    .prepare = v1_prepare,
    .split = v1_split,
    .let_go = v1_let_go,
    .limit = v1_limit,
    .restart_peak = v1_restart_peak,
};
