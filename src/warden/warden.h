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
    bool made;   /* its control group exists */
    bool known;  /* the server has its knobs */
    bool failed; /* the server was told that this sandbox is not to be had */
    bool orphan; /* whose server died: the next one never hears of it */
    bool untold; /* it is over, but its memory is not back: for the server it is still there */
    struct cgroup_slot cgroup;
    uint64_t sandbox;
    struct nursery_child *nursery; /* borrowed: whose sandbox it is */
    struct kept *kept;             /* owned: see kept.c; NULL unless its kernels stay */
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

struct warden {
    struct loop *loop;
    struct config config;
    int config_fd, listen_fd, life_fd, ready_fd, signals;
    int all_fd; /* the whole configuration, for the server */
    struct watch life_watch, signal_watch;
    struct idmap ids;
    struct cgroup_root cgroups;
    struct cgroup_limits limits;
    struct slot *slots;       /* config.max_sandboxes of them */
    unsigned used, most_used; /* slots; most since slots_spare looked last */
    uint64_t last_sandbox;
    struct nursery_child *all;                            /* owned */
    struct nursery_child *nurseries[CONFIG_MAX_PROFILES]; /* borrowed: NULL for a removed profile */
    unsigned parts;     /* of the id range: as many profiles there can be */
    uint32_t ids_from;  /* where in each part ours begin */
    bool no_live;       /* too few ids for live kernels */
    struct probe probe; /* what this machine gives */
    uint32_t server_restarts, nursery_restarts, zygote_restarts;
    pid_t server;
    pid_t shrinker; /* 0 when there is none; see slots.c */
    struct chan server_chan;
    uint64_t server_started_ns;
    struct timer server_restart, dirty_timer, spare_timer;
    dev_t socket_dev;
    ino_t socket_ino; /* of the socket's name; 0 when it has none that we can reach */
    bool stopping;
    bool draining; /* the server was asked to finish; its end is ours */
    bool cannot;   /* start: trying again is no use */
};

#define HTTP_FDS 8 /* the first of what is handed on to the server for HTTP */

/* nurseries.c */
int nurseries_add(struct warden *w, unsigned profile, struct err *e);
/* The same for a profile of live kernels, once its twin needs the cores no more; nothing else waits
 * for it. Until then it has no nursery. */
void nurseries_add_live(struct warden *w, unsigned profile);
/* Another one takes over. */
void nurseries_retire(struct warden *w, struct nursery_child *n);
/* A sandbox of its is gone: a retired one goes with the last. */
void nurseries_left(struct warden *w, struct nursery_child *n);
void nurseries_free(struct warden *w);
bool nurseries_reaped(struct warden *w, pid_t pid, int status);

/* server.c */
int server_start(struct warden *w, struct err *e);
void server_reaped(struct warden *w, int status);
void server_tell_profile(struct warden *w, unsigned profile);
void server_tell_restarts(struct warden *w);
void server_tell_kernel_failed(struct warden *w, uint64_t sandbox, uint32_t number,
                               const char *why);

/* kept.c */
/* N_MADE, N_KERNEL_MADE: take the descriptors. */
void kept_made(struct slot *s, struct wire_in *in);
void kept_kernel_made(struct slot *s, uint32_t number, struct wire_in *in);
/* The rest of W_KERNEL_MADE. */
void kept_put_knobs(const struct slot *s, uint32_t number, struct wire_out *o);
/* The server has closed its end of the process's stdin, which is none while we have a copy. */
void kept_shut(struct slot *s, uint32_t number);
/* `heard`: by a server. */
void kept_exited(struct slot *s, uint32_t number, uint32_t status, bool heard);
/* Takes *journal. */
int kept_keep(struct slot *s, int *journal, struct err *e);
/* Whether the sandbox goes on without its server. */
bool kept_outlives(const struct slot *s);
void kept_free(struct slot *s);
/* A server has just started: what an earlier one kept is its now. */
void kept_give(struct warden *w);

/* groups.c: a kernel of a live sandbox may have a control group of its own below the slot's. */
/* NULL and why. */
const struct cgroup_slot *groups_make(struct warden *w, struct slot *s, uint32_t number,
                                      const struct cgroup_limits *l, struct err *e);
/* NULL: it has none. */
const struct cgroup_slot *groups_find(const struct slot *s, uint32_t number);
/* The kernel has ended, and nobody wants to read the group any more: what the kernel left behind in
 * it ends, too. */
void groups_left(struct warden *w, struct slot *s, uint32_t number);
/* The sandbox is gone. True when no group is left; else it is to be asked again. */
bool groups_clear(struct warden *w, struct slot *s);
/* Those that are left: tries each once. True when some are still there. */
bool groups_retry(struct warden *w, struct slot *s);
/* Closes those that cannot be removed. */
void groups_forget(struct warden *w, struct slot *s);

/* reload.c */
void warden_reload(struct warden *w, struct wire_in *in);

/* slots.c */
struct slot *slots_take(struct warden *w, struct nursery_child *n, struct err *e);
struct slot *slots_find(struct warden *w, uint64_t sandbox);
/* Kills its sandbox. */
void slots_end(const struct slot *s);
/* The sandbox is gone. */
void slots_release(struct warden *w, struct slot *s);
/* Something is about to be empty. */
void slots_look_again(struct warden *w);
void slots_recheck(struct timer *t);
/* Control groups that nobody has needed for a while are removed: the kernel's memory for each is
 * about a megabyte. */
void slots_spare(struct timer *t);

/* spawn.c: the one place that forks. The descriptors become 3, 4, … of the new program. */
#define SPAWN_MAX_FDS (3 + HTTP_FD_DIRS_ + HTTP_MAX_LISTENERS) /* as many as the server gets */
struct spawn {
    const char *program; /* name in libexec */
    const char *const *argv;
    const int *fds;
    unsigned nfds;
    bool unprivileged; /* give up root, if we have it */
};
int spawn(const struct warden *w, const struct spawn *s, pid_t *ret, struct err *e);

/* A line for the one who started us. */
void warden_say(struct warden *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
