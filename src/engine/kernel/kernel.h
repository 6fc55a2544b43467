#pragma once
/* The inside of a kernel; for kernel/ and live/ only. Others see it through
 * kernels.h. */

#include "base/id.h"
#include "engine/core/output.h"
#include "engine/kernel/kernels.h"
#include "engine/process/process.h"

struct kernel_query;
struct lent;
struct telling;

#define LATE_MAX (64u << 10) /* bytes printed between two executions: the next one gets them */

enum kernel_state {
    KERNEL_STARTING, /* its process is asked for, or is being set up; also when it has none */
    KERNEL_IDLE,
    KERNEL_BUSY,   /* a cell runs, or what an interrupt did is waited for */
    KERNEL_ENDING, /* its process is to be killed */
    KERNEL_STATES_
};

struct kernel_wait {
    struct kernel_wait *next;
    kernel_ready_fn *fn;
    void *arg;
};

struct kernel {
    struct kernel *next;
    struct live *live; /* borrowed */
    char id[ID_MAX];
    struct process process;
    enum kernel_state state;
    bool is_default, was_ready;
    bool begun;         /* it was told to be a kernel */
    bool is_fresh;      /* a new process, after another one died or was ended */
    bool forgotten;     /* not among its sandbox's any more */
    const char *broken; /* why its process had to be ended; or NULL */
    bool deleted;       /* no other process comes after this one */
    char *env, *cwd;    /* owned; or NULL */
    char *label;        /* owned; or NULL */
    struct buf lasting; /* of those, for the next server (live/keep.c); empty: to be written anew */
    struct kernel_watcher *watchers;
    struct cell *running;
    struct cell *queue, **queue_end;
    unsigned nqueued, restarts, failures;
    unsigned unread; /* answers, since it last had read all */
    uint64_t execution_count, last_query;
    struct output out[2];
    struct kernel_query *queries;
    struct lent *lent; /* owned: requests in files, oldest first */
    unsigned nlent;
    struct kernel_wait *waits; /* for it to be ready */
    struct timer retry;        /* to start it, or to give up one that hung up */
    struct telling *telling;   /* what is still to be said to it, first to last */
    struct deferred go_later, free_later;
};

void kernel_move(struct kernel *k, enum kernel_state to);
void kernel_init(struct kernel *k, struct live *l);
void kernel_begin_first(struct kernel *k);
void kernel_ended_with(struct live *l, const struct err *why); /* all of them */
/* Nothing that it says counts any more. */
void kernel_give_up(struct kernel *k, const char *why);
/* Asks for a process. */
void kernel_start(struct kernel *k);
/* It is not among its sandbox's any more; who waits for it hears why. */
void kernel_forget(struct kernel *k, const struct err *why);
/* What an interrupt did is over (see kernel_query): the next cell may begin. */
kernel_reply_fn kernel_on_calm;
/* The cell that runs from now on, or NULL. */
void kernel_set_running(struct kernel *k, struct cell *c);
/* Begins the next execution, if it can. */
void kernel_go_on(struct kernel *k);
/* Its process must go: what runs ends as killed. */
void kernel_kill(struct kernel *k);
/* Whoever reads what it prints and shows is slow: it waits. */
void kernel_hold(struct kernel *k, bool hold);
/* What was printed until now. */
void kernel_catch_up(struct kernel *k);
/* Answers the question `id` with what the process is to be: see kernel_query(). */
void kernel_set_up(struct kernel *k, const char *id);
/* The one that ran is over; an interrupt was sent to it. */
void kernel_ran(struct kernel *k, bool interrupted);
