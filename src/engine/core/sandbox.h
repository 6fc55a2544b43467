#pragma once
/* A sandbox as the server holds it. */

#include "engine/core/cgroup_fds.h"
#include "engine/core/denials.h"
#include "engine/core/kept.h"
#include "engine/core/network.h"
#include "engine/core/pool.h"
#include "wire/chan.h"
#include "wire/codec.h"

#include <stdbool.h>
#include <stdint.h>

struct engine;

enum sandbox_state {
    SANDBOX_STARTING,
    SANDBOX_READY, /* in its pool */
    SANDBOX_BUSY,  /* has a guest; one from an earlier server begins here */
    SANDBOX_ENDING,
    SANDBOX_STATES_
};

#define SANDBOX_MAX_ASKED  128
#define SANDBOX_MOST_ASKED (SANDBOX_MAX_ASKED - 32) /* but for signals, which always find room */

/* What an answer of init is the answer to. */
enum asked { ASKED_SIGNAL, ASKED_KILL, ASKED_USAGE, ASKED_NETWORK, ASKED_MEMORY };

/* Who waits for a sandbox, and then has it: a program, or a live sandbox. Embedded in its owner. */
struct guest {
    struct queue_item place; /* in the pool's queue; its owner is the guest */
    const struct guest_kind *kind;
    void *owner;                 /* borrowed: the one that it is embedded in */
    const struct limits *limits; /* borrowed from the owner */
    const char *id, *tenant;     /* likewise */
    uint64_t files_bytes;        /* of what is copied in for it, before it begins */
    struct kept kept;            /* of what its programs print and show */
};

struct guest_kind {
    void (*assign)(void *owner, struct sandbox *s);
    /* It waited in vain. */
    void (*fail)(void *owner, const struct err *why);
    /* From the first kernel. */
    void (*frame)(void *owner, struct wire_in *in);
    void (*hung_up)(void *owner); /* it closed its control socket, or ended */
    /* From init. */
    void (*answer)(void *owner, enum asked what, struct wire_in *in);
    /* Where to note what this process was refused; NULL: nowhere. */
    struct denials *(*denied)(void *owner, uint32_t process);
    void (*limit)(void *owner, enum limit_kind kind);
    /* From the warden. */
    void (*exited)(void *owner, uint32_t number, int status);
    void (*lost)(void *owner);
    /* One more process is there, but for `why` not all of it came; or there is none. NULL for
     * guests that ask for none. */
    void (*more)(void *owner, const struct w_kernel_made *m, struct wire_in *in, const char *why);
    void (*no_more)(void *owner, uint32_t number, const char *why);
};

/* A question to init without an answer yet. */
struct question {
    enum asked what;
    void (*fn)(void *arg, struct wire_in *in); /* or NULL: the guest gets the answer */
    void *arg;
};

struct sandbox {
    struct sandbox *next;       /* of all */
    struct sandbox *next_ready; /* of the pool's ready ones */
    struct engine *engine;      /* borrowed */
    struct profile_pool *pool;  /* borrowed */
    struct cgroup_fds *cgroup;  /* borrowed: the slot's */
    enum sandbox_state state;
    uint64_t id, workspace_mtime_ns;
    uint16_t version; /* of the protocol, that its init and its kernels speak */
    uint64_t charge;  /* bytes of the memory budget, from its program's start until it is gone */
    uint64_t files_bytes;   /* of those: for files that the server wrote, or is about to */
    uint64_t lent_bytes;    /* of those: of requests that its kernels have not answered (lent.h) */
    uint64_t stdin_bytes;   /* of those: that its commands have not read */
    uint64_t written_bytes; /* by the server, onto its disk, so far */
    struct {
        uint64_t memory, files, shared, written; /* at the last look */
        uint64_t uploaded; /* of the files: what the server wrote of them, as far as it shows */
    } seen;                /* see memory_watch.c */
    bool is_tight;         /* its control group may hold no more than it does */
    bool is_broken;        /* see sandbox_break */
    bool staged;           /* all that was reserved for files is written, or was given up */
    struct chan ctl, req;
    int fds[SANDBOX_FDS_];                    /* owned, but for the two that became channels */
    struct guest *guest;                      /* borrowed: who has it */
    struct question asked[SANDBOX_MAX_ASKED]; /* a ring */
    uint64_t echo; /* until init sends it back, its answers are to questions of an earlier server */
    unsigned asked_at, nasked;
    uint32_t tasks; /* without control groups: processes and threads, by init */
    struct network network;
    bool net_used;              /* a socket reaches its network namespace */
    struct timer deadline;      /* for becoming ready */
    void (*on_gone)(void *arg); /* or NULL: somebody waits for its end */
    void *gone_arg;
    struct deferred end_later, free_later;
};

void sandbox_move(struct sandbox *s, enum sandbox_state to);
/* From W_MADE. */
void sandbox_made(struct engine *g, struct wire_in *in);
/* From W_KEPT. It has no guest yet. */
struct sandbox *sandbox_adopt(struct engine *g, const struct w_made *m, struct wire_in *in,
                              struct err *e);
/* For one that did not come whole: nobody else would end it. */
void sandbox_refuse(struct engine *g, uint64_t id, const struct err *why);
#define NO_DESCRIPTORS "the server may have no more files open (see `ulimit -Hn`)"
/* From W_KERNEL_MADE and W_KERNEL_FAILED. */
void sandbox_more(struct engine *g, struct wire_in *in);
void sandbox_no_more(struct engine *g, struct wire_in *in);
/* Asks init; the answer reaches the guest. False when too much is asked at once, the question does
 * not fit into a message, or init is of an older build and does not know it. */
bool sandbox_ask(struct sandbox *s, enum asked what, const struct wire_out *o);
/* The same with the answer for `fn`, which gets NULL when the sandbox ends before it. */
bool sandbox_ask_for(struct sandbox *s, const struct wire_out *o,
                     void (*fn)(void *arg, struct wire_in *in), void *arg);
/* Whoever asked with this arg does not want the answers any more. */
void sandbox_unask(struct sandbox *s, const void *arg);
/* SECURITY: somebody inside said what no honest one says. Nobody listens to it any more, and it
 * ends as a whole; whoever has it hears of that from the warden, as of any other death. */
void sandbox_break(struct sandbox *s, const char *why);
/* Kills it as a whole; the memory goes when the warden says that it is gone. */
void sandbox_end(struct sandbox *s);
/* The same for one whose guest is through with it, but when replies have left: its end is work for
 * the warden and for us. Nothing that it says meanwhile counts. */
void sandbox_leave(struct sandbox *s);
/* The warden says that all of it is dead. */
void sandbox_gone(struct sandbox *s);
struct sandbox *sandbox_find(struct engine *g, uint64_t id);
uint64_t sandbox_workspace_mtime(const struct sandbox *s);
/* Whether a name was made, removed or renamed in its workspace since it was ready; init may know
 * more of what changed below. */
bool sandbox_is_touched(const struct sandbox *s);
/* Whether no name at all is in its workspace, as far as that can be seen without a question. */
bool sandbox_is_empty(const struct sandbox *s);
bool sandbox_is_full(const struct sandbox *s);
uint64_t sandbox_disk_bytes(const struct sandbox *s); /* that its files take */
/* Packets that had no way out, so far. */
uint64_t sandbox_no_route(const struct sandbox *s);
