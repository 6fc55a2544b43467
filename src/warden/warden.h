#pragma once
/* The privileged process. Small on purpose: it starts the others, owns the slots (a control group
 * and an id each), relays sandboxes from nurseries to the server, and cleans up. It never sees
 * code, JSON or HTTP, and what it accepts is a table. */

#include "config/config.h"
#include "loop/loop.h"
#include "sandbox/cgroup.h"
#include "sandbox/idmap.h"
#include "sandbox/probe.h"
#include "wire/chan.h"

#include <stdbool.h>
#include <sys/types.h>

enum slot_state {
    SLOT_FREE,  /* clean: may be given out */
    SLOT_USED,  /* a sandbox is in it, or on its way */
    SLOT_DIRTY, /* the sandbox is gone, its memory is not: waits until it is */
};

struct slot {
    enum slot_state state;
    bool made;    /* its control group exists */
    bool known;   /* the server has its knobs */
    bool settled; /* the server was told what became of it: made, or not to be had */
    bool told;    /* the server knows its number */
    bool ending;  /* the server has given it up */
    bool orphan;  /* its server died: the next one never hears of it */
    bool untold;  /* it is over, but its memory is not back: for the server it is still there */
    struct cgroup_slot cgroup;
    uint64_t sandbox;
    struct nursery_child *nursery; /* borrowed: whose sandbox it is */
    struct survivor *survivor;     /* owned: see survivors.c; NULL unless its kernels stay */
    struct group *groups;          /* owned: see groups.c; mostly NULL */
    unsigned looks;                /* how often a dirty one was looked at */
    bool shrink;                   /* a dirty one: what nobody holds is to be freed */
};

struct warden;

/* `all` links them: the one that works for a profile, and those that it replaced. */
struct nursery_child {
    struct nursery_child *next;
    struct warden *warden; /* borrowed */
    unsigned profile;
    pid_t birth, pid; /* first stage; the nursery proper, 0 when there is none */
    struct chan chan;
    enum profile_state state;
    char what[2048], modules[4096]; /* of the last N_STATE */
    struct timer restart;
    unsigned failures;
    bool retired; /* makes no more sandboxes, ends with its last one */
    uint64_t started_ns;
    struct deferred free_later;
};

struct gate_child {
    pid_t pid; /* 0 when there is none */
    struct chan chan;
    struct timer restart;
    unsigned failures; /* how often one after the other it died young */
    uint64_t started_ns;
};

struct warden {
    struct loop *loop;
    struct config config;
    int config_fd, listen_fd, life_fd, ready_fd, signals;
    int all_fd; /* the whole configuration, for the server */
    struct watch life_watch, signal_watch;
    struct idmap ids;
    struct cgroup_root cgroups;
    struct cgroup_limits limits;
    struct slot *slots;       /* owned */
    unsigned nslots;          /* config_places(), or as many as may be used */
    unsigned used, most_used; /* slots; most since slots_spare looked last */
    uint64_t last_sandbox;
    struct nursery_child *all;                            /* owned */
    struct nursery_child *nurseries[CONFIG_MAX_PROFILES]; /* borrowed: NULL for a removed profile */
    unsigned parts;     /* of the id range: as many profiles there can be */
    uint32_t ids_from;  /* where in each part ours begin */
    bool no_live;       /* too few ids for live kernels */
    struct probe probe; /* what this machine gives */
    uint32_t server_restarts, nursery_restarts, zygote_restarts, gate_restarts;
    pid_t server;
    pid_t shrinker; /* 0 when there is none; see slots.c */
    struct chan server_chan;
    struct gate_child gate;
    uint64_t server_started_ns;
    struct timer server_restart, dirty_timer, spare_timer;
    struct timer stranded_timer; /* for what is left of sandboxes that have ended: */
    uint64_t stranded_told;      /* bytes, as the server knows it */
    dev_t socket_dev;
    ino_t socket_ino; /* of the socket's name; 0 when it has none that we can reach */
    bool stopping;
    bool draining; /* the server was asked to finish; its end is ours */
    bool cannot;   /* start: trying again is no use */
};

#define HTTP_FDS 8 /* the first of what is handed on to the server for HTTP */
