#pragma once
/* The nursery proper: PID 1 of a profile's user and pid namespace. Makes sandboxes when the warden
 * asks, keeps the zygotes, reaps everything. See nursery.c. */

#include "loop/loop.h"
#include "nursery/netpool.h"
#include "wire/chan.h"
#include "wire/config.h"
#include "wire/wire.h"

#include <sys/types.h>

#define MAX_PROCS 8

struct nursery;
struct zygote;

enum box_state {
    BOX_INIT,    /* init sets up its namespaces */
    BOX_WAITING, /* ready for a kernel, no zygote free to fork one yet */
    BOX_FORKING, /* a zygote was asked */
    BOX_LIVE,    /* handed over */
    BOX_DYING,   /* init was killed, not yet reaped */
};

/* A sandbox, seen from here. */
struct box {
    struct box *next;
    struct nursery *nursery; /* borrowed */
    enum box_state state;
    uint64_t id;
    uint32_t uid;
    pid_t init, kernel;
    int pidfd;
    struct net net;
    int hand; /* to init: first ours, then the kernel's */
    int born; /* init's end of it, until init has a table of descriptors of its own */
    struct watch watch;
    int fds[INIT_FDS]; /* in transit */
    int procs[MAX_PROCS];
    unsigned nprocs;
    struct zygote *zygote; /* borrowed: who forks or forked its kernel; NULL when that is gone */
    bool told;             /* the warden knows of it, or was told that it failed */
};

enum zygote_state {
    ZYGOTE_STARTING,
    ZYGOTE_READY,
    ZYGOTE_LEAVING, /* replaced and killed; what it said before is still read */
    ZYGOTE_GONE
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
    struct config config;
    const struct config_profile *profile; /* borrowed from config */
    struct chan warden;
    struct netpool nets;
    struct box *boxes;
    struct zygote *zygotes;
    int filter;           /* memfd: the late part of the system call filter */
    uint8_t early[16384]; /* the early part, which zygotes enter before they start */
    size_t early_len;
    int setup; /* memfd: what a zygote loads */
    int signals;
    struct watch signal_watch;
    struct timer restart; /* a zygote that dies young is not restarted at once */
    unsigned failures;
    bool single; /* one id for all */
};

_Noreturn void nurse(unsigned profile);

/* zygotes.c */
int zygotes_init(struct nursery *n, struct err *e);
int zygotes_start(struct nursery *n, struct err *e);
/* Gives waiting boxes to zygotes that can take them. */
void zygotes_dispatch(struct nursery *n);
/* A child ended: true if it was a zygote. */
bool zygotes_reaped(struct nursery *n, pid_t pid, int status);
void nursery_state(struct nursery *n, enum profile_state state, const char *what,
                   const char *modules);

/* boxes.c */
void boxes_make(struct nursery *n, struct wire_in *in);
void boxes_end(struct nursery *n, uint64_t id);
bool boxes_reaped(struct nursery *n, pid_t pid, int status);
struct box *boxes_find(struct nursery *n, uint64_t id);
/* The kernel is forked: everything goes to the warden. */
void boxes_forked(struct nursery *n, struct box *b, pid_t kernel);
void boxes_failed(struct nursery *n, struct box *b, const char *why);
void boxes_exited(struct nursery *n, uint64_t id, uint32_t number, int status);
