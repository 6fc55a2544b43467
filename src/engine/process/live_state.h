#pragma once
/* A live sandbox as its processes see it: where they are, and whom they tell what. For process/,
 * kernel/ and live/ only; others see it through live/live.h. */

#include "base/id.h"
#include "engine/core/engine.h"
#include "engine/core/rest.h"
#include "engine/core/sandbox.h"
#include "engine/core/stage.h"
#include "engine/process/live_request.h"
#include "wire/chan.h"

struct command;
struct hearing;
struct journal;
struct kernel;
struct live_watcher;
struct process;

enum live_state {
    LIVE_WAITING, /* for a sandbox */
    LIVE_STAGING, /* limits and files */
    LIVE_RUNNING, /* also while it is paused; one from an earlier server begins here */
    LIVE_ENDED,
    LIVE_STATES_
};

/* What all live sandboxes of an engine have together. */
struct live_shared {
    struct loop_share hearing; /* of all kernels and commands, in a turn of the loop */
    bool unwritten;            /* the journal of one of them is behind */
    uint64_t typed_ns;         /* when what was typed at their terminals will be worked off */
};

struct live {
    struct live *next;
    struct engine *engine;
    struct live_shared *shared; /* borrowed from the engine's struct lives */
    struct profile_pool *pool;
    struct guest guest;
    struct sandbox *sandbox; /* borrowed while it is ours */
    enum live_state state;
    char id[ID_MAX];
    struct live_request req;
    char *profile; /* owned: the name of the lean twin */
    struct stage stage;
    double created;
    uint64_t expires_ns, idle_since_ns; /* 0: never; in use */
    unsigned held;
    unsigned inward; /* requests to servers inside: see live/live_ports.h */
    bool paused;
    uint16_t port;      /* of its own; 0: none */
    struct timer timer; /* while it waits: for a sandbox; then: its end */
    live_ready_fn *ready;
    void *ready_arg;
    struct kernel *kernels; /* the default one first */
    struct process *processes;
    struct command *commands; /* oldest first */
    struct live_watcher *watchers;
    uint32_t last_number;
    uint64_t executions, memory_peak;
    unsigned running;         /* cells and commands that have not ended, but for those that wait */
    uint64_t turns;           /* cells and commands that began; see network_attempts.c */
    uint64_t cpu_told_us;     /* see cpu_account.c */
    uint64_t heard_ns;        /* see pace.c */
    struct hearing *hearings; /* what its kernels said is being read; or NULL */
    struct rest rest;         /* from hearing them, and from reading what is printed */
    struct timer account_timer;
    uint64_t kills_below, cpu_below_us; /* in control groups of kernels that are gone */
    struct journal *journal;            /* owned; NULL: it ends with this server */
    uint64_t *told;                     /* borrowed from that: the events that were told, or NULL */
    uint64_t *lent_told;                /* likewise: the bytes that are lent (kernel/lent.c) */
    uint32_t to_come;                   /* processes that an earlier server had */
    struct deferred write_later, free_later;
    bool unwritten;           /* the journal is behind */
    uint64_t hurried_ns;      /* when it was last to be written at once for a kernel's sake */
    struct timer write_timer; /* for what need not be written at once */
    struct buf lasting;       /* see keep.c */
    uint64_t edition;         /* of what lasts of all that is in it */
};

#define SECOND_NS 1000000000ull

/* Something of what the next server has to know is different now. */
void live_changed(struct live *l);
/* The same for what a kernel may change as often as it likes: it is written at once if that has not
 * been so for a moment, else within one, and a client may be told of it before. */
void live_changed_lately(struct live *l);
/* An event was told. */
void live_said(struct live *l);

/* A question to init (see the I_… messages; about files: files.h); the answer is NULL when the
 * sandbox ends before it. False when too much is asked at once. */
bool live_ask(struct live *l, const struct wire_out *o, void (*fn)(void *arg, struct wire_in *in),
              void *arg);
void live_unask(struct live *l, const void *arg);
