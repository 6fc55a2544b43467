#pragma once
/* The nursery proper: PID 1 of a profile's user and pid namespace. Makes sandboxes when the warden
 * asks, keeps the zygotes, reaps everything. See nursery.c. */

#include "config/config.h"
#include "init/machine.h"
#include "loop/loop.h"
#include "nursery/mounts.h"
#include "nursery/netpool.h"
#include "wire/chan.h"
#include "wire/wire.h"

#include <sys/types.h>

struct nursery;
struct zygote;

enum kernel_state {
    KERNEL_WANTED,  /* waits until init can be asked for its ends, which goes one at a time */
    KERNEL_ASKED,   /* init was asked; for the first kernel it sends them unasked */
    KERNEL_WAITING, /* its ends are here, no zygote free to fork it yet */
    KERNEL_FORKING, /* a zygote was asked */
    KERNEL_LIVE,
};

/* A process that is or will be in a sandbox: its first kernel, another one, or a command. */
struct kernel {
    struct kernel *next;
    struct box *box; /* borrowed */
    enum kernel_state state;
    uint32_t number;
    uint64_t turn; /* the lowest goes first */
    pid_t pid;     /* 0 before it is there */
    /* In transit: the owner's ends, of which the first kernel brings those of the sandbox; the
     * process's own, from KERNEL_CTL on; its control groups. */
    int ours[SANDBOX_SNMP];
    unsigned nours;
    int ends[KERNEL_END_FDS];
    int procs[PROCS_FDS];
    unsigned nprocs;
    struct zygote *zygote; /* borrowed: who forks or forked it; NULL when that is gone */
};

enum box_state {
    BOX_GONE, /* of a number that no box has */
    BOX_MAKING,
    BOX_LIVE,  /* handed over */
    BOX_DYING, /* init was killed, not yet reaped */
    BOX_STATES_
};

/* A sandbox as its nursery sees it. */
struct box {
    struct box *next;
    struct nursery *nursery; /* borrowed */
    enum box_state state;
    uint64_t id;
    uint32_t uid;
    pid_t init;
    int pidfd;
    struct net net;
    uint8_t *used; /* borrowed from the nursery: init sets it when `net` is used */
    int hand;      /* to init: ours, and that of each kernel on its way in */
    int born;      /* init's end of it, until init has a table of descriptors of its own */
    struct watch watch;
    struct kernel *kernels; /* owned: those to come and those that live, oldest first */
    bool told;              /* the warden knows of it, or was told that it failed */
};

enum zygote_state {
    ZYGOTE_STARTING,
    ZYGOTE_READY,
    ZYGOTE_LEAVING, /* replaced and killed; what it said before is still read */
    ZYGOTE_GONE,
    ZYGOTE_STATES_
};

struct zygote {
    struct zygote *next;
    struct nursery *nursery; /* borrowed */
    enum zygote_state state;
    pid_t pid;
    struct chan chan;
    unsigned long forks;
    unsigned pending; /* forks asked for and not answered */
    struct timer age;
    bool retiring; /* a younger one takes over; no new work */
    bool said_why; /* it told that the profile is broken */
    struct deferred free_later;
};

struct nursery {
    struct loop *loop;
    struct config config;                 /* our part, and from the first zygote on its numbers */
    const struct config_profile *profile; /* borrowed from config */
    char *python;                         /* owned: the interpreter */
    struct mounts mounts;
    bool has_trees; /* tenants have profiles of their own */
    struct chan warden;
    struct netpool nets;
    int machine[MACHINE_FILES]; /* owned: see machine_open */
    struct box *boxes;
    uint8_t
        *used; /* by slot, shared with the inits: whether a sandbox used its network namespace */
    uint64_t turns;
    struct zygote *zygotes;
    int filter;           /* memfd: the late part of the system call filter */
    uint8_t early[16384]; /* the early part, which zygotes enter before they start */
    size_t early_len;
    int setup; /* memfd: what a zygote loads */
    int signals;
    struct watch signal_watch;
    struct timer restart; /* a zygote that dies young is not restarted at once */
    unsigned failures;
    char why[ERR_TEXT_MAX]; /* the last zygote never became one; "": it did */
    bool single;            /* one id for all */
    uint32_t ids, last_uid; /* how many there are, and the one that was given last */
};

_Noreturn void nurse(unsigned profile);

/* Tells the warden, and with it everybody who shows the profile. */
void nursery_state(struct nursery *n, enum profile_state state, const char *what,
                   const char *modules);
