#pragma once
/* Kernels of a live sandbox, and executions in them: the header for others, who get it with
 * live/live.h. */

#include "base/err.h"
#include "engine/kernel/cell_result.h"
#include "engine/kernel/kernel_view.h"
#include "wire/limits.h"

#include <stdbool.h>
#include <stddef.h>

struct buf;
struct cell;
struct json_t;
struct kernel;
struct live;

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
    const char *op;   /* a constant: another operation of the kernel's than execute; or NULL */
    struct buf extra; /* more members of the kernel's request, as JSON; or nothing */
    char *tag;        /* owned: what its owner knows it by, also in the next server; or NULL */
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
