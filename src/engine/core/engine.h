#pragma once
/* The engine: sandboxes kept ready and given to those who wait for one. Lives in the server
 * process, which has no privilege: it asks the warden for sandboxes and holds descriptors to the
 * rest.
 *
 * Its guests are the programs of oneshot/run.h and the live sandboxes of live/live.h; the core
 * knows neither (sandbox.h has what a guest is). */

#include "config/config.h"
#include "engine/core/about.h"
#include "engine/core/cgroup_fds.h"
#include "engine/core/network.h"
#include "engine/core/pool.h"
#include "engine/core/trees.h"
#include "engine/network/terms.h"
#include "loop/loop.h"
#include "loop/share.h"
#include "wire/chan.h"

#include <stdbool.h>
#include <stdint.h>

struct crew;
struct lives;
struct rest;
struct sandbox;

struct engine_counts {
    uint64_t runs;      /* programs and cells that began */
    unsigned sandboxes; /* alive, in any state */
    unsigned live;      /* sandboxes that stay, and the cells that run in them */
    unsigned cells;
    uint64_t requests; /* over HTTP, answered or not; the API counts them */
};

struct engine {
    struct loop *loop;         /* borrowed */
    struct crew *crew;         /* borrowed: for what takes longer than a turn of the loop may */
    struct loop_share reading; /* of what programs print, in a turn of the loop */
    struct loop_share listing; /* of lists of their files */
    struct config config;
    struct chan warden;
    struct network_gate gate;
    struct network_rules *network; /* owned: what may be granted of it */
    struct profile_pool pools[CONFIG_MAX_PROFILES];
    struct engine_trees trees;  /* profiles of tenants */
    struct sandbox *sandboxes;  /* all that are not gone */
    struct cgroup_fds *cgroups; /* owned: by slot, config_places() */
    unsigned max_making;        /* sandboxes of one profile being made at a time */
    unsigned turn;              /* the profile that is first to get the next place */
    uint64_t charged;           /* bytes of the memory budget; see budget.c */
    uint64_t stranded_bytes;    /* of those: of sandboxes that are gone, which somebody holds */
    uint64_t measured_ns;       /* when they were last looked at */
    struct timer look_again;    /* somebody waits for memory, and some may be given back */
    struct rest *resting;       /* those whom it worked for a lot lately; see rest.c */
    struct timer look;          /* at sandboxes whose disk is large; see memory_watch.c */
    bool no_groups;             /* sandboxes have no control groups: nothing can be measured */
    struct engine_counts counts;
    struct engine_about about;
    struct lives *lives; /* live sandboxes (live/lives.h); NULL: there are none */
    /* Who takes over what an earlier server kept (W_KEPT); NULL: it is refused. */
    void (*on_kept)(struct engine *g, struct wire_in *in);
    /* What keeps programs from running that the engine does not know of; or NULL, as its answer. */
    const char *(*trouble)(void *arg);
    void *trouble_arg;
    /* Once: all that an earlier server kept is here. Before that nobody may ask for it. */
    void (*on_settled)(void *arg);
    void *settled_arg;
};

/* Takes the warden's socket. */
int engine_init(struct engine *g, struct loop *l, int config_fd, int *warden_fd, struct err *e);
