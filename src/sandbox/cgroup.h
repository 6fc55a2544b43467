#pragma once
/* Control groups behind one facade: v2, and v1 where the controllers live there.
 *
 * The warden makes one group per slot and keeps it while it may be needed; sandboxes come and go
 * in it (cheap to reuse, dear to make). Descriptors carry their permission with them: a slot's
 * `procs` files let a zygote's child attach itself (write "0"), its `knobs` let the server set
 * limits and read usage without privilege. A knob's open file is shared with the server, its
 * position included: both use pread and pwrite. Counters (CPU time, events) only grow and are read
 * as differences. Where no controller can be used the kind is CGROUP_NONE and every call succeeds
 * without doing anything; the caller says so loudly.
 *
 * Layout: <our own group>/cloche-<pid>/<slot>, in every hierarchy in use, and below a slot's k<n>
 * for a process in it that has limits of its own (a sub). Fork rules: none of this is called
 * between fork and exec (cgroup_attach.h is); a child that outlives the warden has exec'ed or
 * closed its copies of the root's descriptors, since they hold the lock that says "alive". */

#include "base/err.h"
#include "sandbox/knobs.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum cgroup_kind { CGROUP_NONE, CGROUP_V1, CGROUP_V2 };

#define CGROUP_MAX_PROCS 5 /* v1: memory, pids, cpu, cpuacct, freezer (co-mounted ones once) */

struct cgroup_root {
    enum cgroup_kind kind;
    int dirs[CGROUP_MAX_PROCS]; /* our cloche-<pid> directory in each hierarchy */
    unsigned ndirs;
    char why[200];                    /* kind NONE: what is missing; otherwise "" */
    char where[200];                  /* for people: where the groups live */
    char name[64];                    /* cloche-<pid> */
    int parents[CGROUP_MAX_PROCS];    /* the directories they were made in */
    unsigned roles[CGROUP_MAX_PROCS]; /* bit set of controllers in that hierarchy */
    unsigned enabled;                 /* v2: bit set of those that we switched on in the parent */
    uint64_t clean_bytes;             /* a group that holds no more than this counts as empty */
};

/* A slot, or a sub of one. */
struct cgroup_slot {
    unsigned slot;
    char name[16];
    int dirs[CGROUP_MAX_PROCS];
    int procs[CGROUP_MAX_PROCS]; /* v1 tasks, v2 cgroup.procs; write only */
    unsigned nprocs;
    int knobs[KNOBS_]; /* all there, or none (nknobs 0) */
    unsigned nknobs;
    bool split;   /* v2: its processes moved down, so that it can have subs */
    bool renewed; /* the last reset remade the groups: the descriptors are new, send them again */
};

/* What a slot's limits are set to when it is made or recycled. */
struct cgroup_limits {
    uint64_t memory_bytes;
    uint32_t pids;
    uint32_t cpus_percent; /* 100 is one core; 0 is no limit */
};

/* Finds what this machine gives us and makes our directory there. Fails only when a hierarchy that
 * looked usable turns out not to be; CGROUP_NONE with `why` is a success. `want` limits the choice
 * (CGROUP_NONE: take the best). */
int cgroup_root_open(struct cgroup_root *r, enum cgroup_kind want, struct err *e);
/* Removes what other wardens that are dead (their pid is gone) left beside us: thaws, kills,
 * removes. */
void cgroup_sweep(const struct cgroup_root *r);
/* Kills and removes everything of ours. */
void cgroup_root_close(struct cgroup_root *r);

int cgroup_slot_make(const struct cgroup_root *r, unsigned slot, const struct cgroup_limits *l,
                     struct cgroup_slot *ret, struct err *e);
/* Sets the limits anew for the next sandbox and starts the peak afresh. Where the peak cannot be
 * started afresh (v2 before kernel 6.12), or page cache of the last sandbox is still charged, the
 * groups are removed and made again and s->renewed is set. After a failure only cgroup_slot_done
 * may follow. */
int cgroup_slot_reset(const struct cgroup_root *r, struct cgroup_slot *s,
                      const struct cgroup_limits *l, struct err *e);
/* True when no process is in it (subs apart) and its memory is back near zero but for page cache:
 * only then may it serve again. Never waits: a caller that gets false asks again later. */
bool cgroup_slot_is_clean(const struct cgroup_root *r, const struct cgroup_slot *s);
/* The bytes that a slot still holds beside page cache; 0 where there are no control groups. */
uint64_t cgroup_slot_bytes(const struct cgroup_root *r, const struct cgroup_slot *s);
/* The same of all that the root's groups hold, and of groups that are gone. */
uint64_t cgroup_root_bytes(const struct cgroup_root *r);
/* Makes the kernel free what nobody holds of those bytes, such as names that were looked up. That
 * can take a second, so a process of its own does it: returns its pid, which the caller reaps, or
 * -1. */
pid_t cgroup_slot_shrink(const struct cgroup_root *r, const struct cgroup_slot *s);
/* Thaws and kills all that is in it, once. Nothing can fork in it from here to the next reset. */
void cgroup_slot_kill(const struct cgroup_root *r, const struct cgroup_slot *s);
/* Closes the descriptors; `remove` also takes the directories away (must be empty). */
void cgroup_slot_done(const struct cgroup_root *r, struct cgroup_slot *s, bool remove);

/* Makes a group for one process of a slot and its descendants. The slot's limits hold for the sub,
 * too. On v2 the slot's `procs` may be another file after this. */
int cgroup_sub_make(const struct cgroup_root *r, struct cgroup_slot *s, unsigned number,
                    const struct cgroup_limits *l, struct cgroup_slot *ret, struct err *e);
/* Kills all that is in it, and takes it away: false while somebody is still there to die. The
 * caller asks again, and closes it in the end (cgroup_slot_done). */
bool cgroup_sub_remove(const struct cgroup_root *r, const struct cgroup_slot *s,
                       const struct cgroup_slot *sub);
