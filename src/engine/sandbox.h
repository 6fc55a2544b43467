#pragma once
/* A sandbox as the server holds it. */

#include "engine/engine.h"

enum sandbox_state { SANDBOX_STARTING, SANDBOX_READY, SANDBOX_BUSY, SANDBOX_ENDING };

#define SANDBOX_MAX_ASKED 64

/* What an answer of init is the answer to. */
enum asked {
    ASKED_LIMITS,
    ASKED_WATCH,
    ASKED_INPUT,
    ASKED_SIGNAL,
    ASKED_KILL,
    ASKED_CHANGES,
    ASKED_FILE,
    ASKED_USAGE
};

struct sandbox {
    struct sandbox *next;       /* of all */
    struct sandbox *next_ready; /* of the pool's ready ones */
    struct engine *engine;      /* borrowed */
    struct profile_pool *pool;  /* borrowed */
    struct knobs *knobs;        /* borrowed: the slot's */
    enum sandbox_state state;
    uint64_t id, workspace_mtime_ns;
    uint64_t charge; /* bytes of the memory budget, from its program's start until it is gone */
    struct chan ctl, req;
    int fds[SANDBOX_FDS_];            /* owned, but for the two that became channels */
    struct run *run;                  /* borrowed: who uses it */
    uint8_t asked[SANDBOX_MAX_ASKED]; /* questions to init without an answer yet, a ring */
    unsigned asked_at, nasked;
    struct timer deadline; /* for becoming ready */
    struct deferred free_later;
};

/* From W_MADE. */
void sandbox_made(struct engine *g, struct wire_in *in);
/* Asks init; the answer reaches run_answer. False when too much is asked at once. */
bool sandbox_ask(struct sandbox *s, enum asked what, const struct wire_out *o);
/* Kills it as a whole; the memory goes when the warden says that it is gone. */
void sandbox_end(struct sandbox *s);
/* The warden says that all of it is dead. */
void sandbox_gone(struct sandbox *s);
struct sandbox *sandbox_find(struct engine *g, uint64_t id);
uint64_t sandbox_workspace_mtime(const struct sandbox *s);

/* reload.c */
void engine_reload(struct engine *g, struct wire_in *in);

/* pool.c */
void pool_init(struct engine *g, unsigned i);
void pool_ready(struct sandbox *s);
/* A sandbox that was being made will not come. */
void pool_failed(struct profile_pool *p, const char *why);
/* Gives ready sandboxes to waiting runs and asks for more where they are missing. */
void pool_dispatch(struct profile_pool *p);
void pool_refill(struct profile_pool *p);
/* A place is free again: first come those for whom a program waits. */
void pool_freed(struct engine *g);
void pool_forget(struct sandbox *s);
/* A run left the queue without a sandbox: what was made for it is too much now. */
void pool_trim(struct profile_pool *p);

/* budget.c: the machine's memory. The first counts the files, and refuses what will never fit. */
int budget_check(const struct engine *g, struct run_request *q, struct err *e);
bool budget_lets(struct engine *g, const struct run_request *q);
void budget_take(struct sandbox *s, const struct run_request *q);
void budget_give(struct sandbox *s);

/* run.c: what happens to the run that uses a sandbox */
void run_assign(struct run *r, struct sandbox *s);
/* It ends without a result. */
void run_fail(struct run *r, const struct err *why);
void run_frame(struct run *r, struct wire_in *in);
void run_answer(struct run *r, enum asked what, struct wire_in *in);
void run_denied(struct run *r, const char *op, const char *detail, const char *rule);
void run_limit(struct run *r, enum limit_kind kind);
void run_exited(struct run *r, int status);
void run_lost(struct run *r);
const struct run_request *run_request_of(const struct run *r);
