#pragma once
/* Live sandboxes: sandboxes that stay, with kernels that keep their state and commands beside them.
 * The native API and the dialects stand on this; it knows nothing of HTTP.
 *
 * By callbacks, on the loop. A struct live, kernel, cell or command is borrowed by whoever found it
 * until the loop's next turn; who comes back later looks it up again by its id.
 *
 * This is the header for others: it has all of what they may use, and includes the rest of that. */

#include "base/id.h"
#include "base/json.h"
#include "config/config.h"
#include "engine/core/denials.h"
#include "engine/core/files.h"
#include "engine/core/outcome.h"
#include "engine/core/stage.h"
#include "engine/live/cell_result.h"
#include "engine/live/command_view.h"
#include "engine/live/kernel_view.h"
#include "engine/live/live_change.h"
#include "engine/live/live_view.h"

struct cell;
struct engine;
struct kernel;
struct live;
struct sandbox;

/* ---- a live sandbox ---- */

struct live_request {
    char *tenant, *profile, *name; /* owned; name may be NULL */
    char *metadata;                /* owned: a JSON object of strings */
    char *alias;                   /* owned: what a dialect finds it by, for its life; or NULL */
    char *payer;                   /* owned: see on_cpu_account of struct lives; or NULL */
    char *env;                     /* owned: a JSON object of strings, for every kernel; or NULL */
    struct limits limits;          /* 0: the default of live sandboxes */
    struct run_input *inputs;      /* owned: put into the workspace before it is ready */
    unsigned ninputs;
    uint32_t ttl_s, idle_s;  /* 0: the default */
    unsigned most_of_tenant; /* 0: no bound but the operator's */
    bool own_bounds;         /* its times, and its cells', were held against other maxima */
};
void live_request_done(struct live_request *q);

/* Once; `why` is NULL when the sandbox is ready. */
typedef void live_ready_fn(void *arg, struct live *l, const struct err *why);
/* Takes the request's contents on success. The callback may come before it returns. */
int live_new(struct engine *g, struct live_request *q, live_ready_fn *fn, void *arg,
             struct live **ret, struct err *e);
/* Whoever asked is gone: no callback, and the sandbox is ended. */
void live_cancel(struct live *l);

/* Puts down for the next server what has changed: before a client is told of it. */
void live_write_all(struct engine *g);

/* NULL with kind "no_such_sandbox", or "sandbox_gone" and the reason. Another tenant's is none. */
struct live *live_find(struct engine *g, const char *tenant, const char *id, struct err *e);
/* Another one of the tenant's than `except` (or NULL) has that name, or waits to be made with it.
 */
bool live_name_taken(const struct engine *g, const char *tenant, const char *name,
                     const struct live *except);
/* The tenant's (NULL: everybody's), oldest first: the first, and the one after `l`. */
struct live *live_next(struct engine *g, const char *tenant, const struct live *l);
bool live_is_held(const struct live *l);
/* It is in use: not idle until as many live_release. For requests that last. */
void live_hold(struct live *l);
void live_release(struct live *l);
/* Told once when it ends, after its executions; who leaves before takes itself out. */
struct live_watcher {
    struct live_watcher *next;
    struct live *live; /* borrowed; NULL when it has ended, or was left */
    void (*on_end)(struct live_watcher *w, const struct err *why);
    void *arg;
};
void live_watch(struct live *l, struct live_watcher *w);
void live_unwatch(struct live_watcher *w);
/* Kills all of it; `done` when nothing is left. `reason` is a constant, for those who come later.
 */
void live_end(struct live *l, const char *reason, void (*done)(void *arg), void *arg);

/* For its files: see engine/core/files.h. */
struct sandbox *live_sandbox(const struct live *l);

/* ---- kernels ---- */

typedef void kernel_ready_fn(void *arg, struct kernel *k, const struct err *why);
/* For its whole life. */
struct kernel_request {
    const char *env, *cwd; /* JSON; a directory; or NULL */
    /* Its own memory_mb, cpus_percent and pids, no higher than the sandbox's: it and all that comes
     * of it are in a control group of theirs. 0 is the sandbox's; NULL, or all 0: what the operator
     * wants for such kernels, or none. */
    const struct limits *limits;
};
/* One more. Kinds "limit_too_high", "cannot_limit". */
int kernel_new(struct live *l, const struct kernel_request *q, kernel_ready_fn *fn, void *arg,
               struct err *e);
/* Not the default one. */
int kernel_delete(struct kernel *k, struct err *e);
/* KeyboardInterrupt; false when nothing runs. */
bool kernel_interrupt(struct kernel *k);
/* A fresh process; what ran and what waited fails. */
void kernel_restart(struct kernel *k, kernel_ready_fn *fn, void *arg);
/* The answer to an input() that waits: a string, or the end of the file. Kind "not_waiting". */
int kernel_stdin(struct kernel *k, struct json_t *value, struct err *e);
int kernel_no_stdin(struct kernel *k, struct err *e);
/* complete, inspect, variables, is_complete, history, comms: `members` is the inside of the
 * request's object ("" is none), the result a JSON text. Kinds "kernel_busy", "kernel_failed". */
typedef void kernel_reply_fn(void *arg, const char *json, size_t len, const struct err *why);
int kernel_query(struct kernel *k, const char *op, const char *members, kernel_reply_fn *fn,
                 void *arg, struct err *e);
void kernel_unquery(struct live *l, const void *arg);
/* Whoever waits with this arg for a kernel to be ready does not any more. */
void kernel_unwait(struct live *l, const void *arg);

/* ---- executions in a kernel ---- */

struct cell_request {
    struct json_t *code;       /* owned: a string */
    char *env, *formats;       /* owned: JSON, or NULL */
    struct json_t *stdin_text; /* owned: a string, lines for input(); or NULL */
    const char *op; /* a constant: another operation of the kernel's than execute; or NULL */
    char *extra;    /* owned: more members of the kernel's request, as JSON; or NULL */
    char *tag;      /* owned: what its owner knows it by, also in the next server; or NULL */
    bool allow_stdin, silent, no_history;
    struct limits limits; /* timeout_ms, cpu_seconds, output_bytes; 0: the sandbox's */
    bool own_bounds;      /* these were held against other maxima than the engine's */
};
void cell_request_done(struct cell_request *q);

struct cell_callbacks {
    void *arg;
    /* start, stdout, stderr, result, display, clear, input, error; comm, payload, expressions for
     * those whose `extra` asks for them. `json` is an object. */
    void (*on_event)(void *arg, const char *type, const struct buf *json);
    /* Once; `why` is NULL when there is a result. The cell is gone after it. */
    void (*on_done)(void *arg, struct cell *c, const struct err *why);
};
/* Takes the request's contents on success. No callback comes before it returns. */
int cell_new(struct kernel *k, struct cell_request *q, const struct cell_callbacks *cb,
             struct cell **ret, struct err *e);
const char *cell_id(const struct cell *c);
const char *cell_tag(const struct cell *c);    /* or NULL */
const char *cell_kernel(const struct cell *c); /* its id */
/* KeyboardInterrupt; one that waits in the queue just ends. on_done comes either way. */
void cell_interrupt(struct cell *c);
/* The consumer is slow. */
void cell_hold(struct cell *c, bool hold);
/* For one that came from an earlier server: who hears of it from now on. */
void cell_call(struct cell *c, const struct cell_callbacks *cb);

/* ---- commands ---- */

struct command;

struct command_request {
    char **argv;      /* owned, NULL-terminated */
    char *shown;      /* owned: what was asked for, for people */
    char *cwd;        /* owned */
    char *env;        /* owned: JSON, besides the sandbox's; or NULL */
    char *stdin_data; /* owned, or NULL */
    size_t stdin_len;
    bool stdin_open;           /* more may come (command_stdin) */
    uint32_t timeout_ms;       /* 0: none */
    uint64_t output_bytes;     /* kept of each stream; 0: the sandbox's */
    uint32_t rows, columns;    /* 0: no terminal */
    bool stays;                /* when who sits at its terminal leaves: for command_stays only */
    char request[40], key[24]; /* who asked for it, for on_command; "" after a server's death */
};
void command_request_done(struct command_request *q);

struct command_callbacks {
    void *arg;
    /* start, stdout, stderr. */
    void (*on_event)(void *arg, const char *type, const struct buf *json);
    /* What a terminal shows, as it comes; or NULL. */
    void (*on_bytes)(void *arg, const void *data, size_t len);
    /* Once: it is over. It can still be found by its id. */
    void (*on_done)(void *arg, struct command *c);
    /* Or this: another one gets all that from now on (command_call); or NULL. */
    void (*on_replaced)(void *arg);
};
/* 0, or -1 with kind "too_many_commands". */
int command_may_start(const struct live *l, struct err *e);
int command_new(struct live *l, struct command_request *q, const struct command_callbacks *cb,
                struct command **ret, struct err *e);
/* To its process group, as soon as it is there; SIGKILL to all that comes from it. */
int command_signal(struct command *c, int sig, struct err *e);
/* No bytes are the end of its stdin. Kind "stdin_closed", "stdin_full". */
int command_stdin(struct command *c, const void *data, size_t len, struct err *e);
void command_resize(struct command *c, uint32_t rows, uint32_t columns);
/* Its terminal goes: it hears SIGHUP, and reads and writes fail. */
void command_hang_up(struct command *c);
void command_hold(struct command *c, bool hold);
/* Another one wants its events from now on. */
void command_call(struct command *c, const struct command_callbacks *cb);
/* Killed if it runs, and forgotten. */
void command_delete(struct command *c);
