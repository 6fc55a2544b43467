#pragma once
/* One execution that a request asked for, from the checked body to the result: its files in and
 * out, its record, its line in the audit log. One-shot, stream and batch are thin users of this. */

#include "api/core/call.h"
#include "engine/oneshot/result.h"
#include "engine/oneshot/run.h"

struct exec;

extern const struct schema execute_schema, batch_schema;

/* Bytes of code; more goes into a memfd: the kernel's message has WIRE_MAX bytes. */
#define EXEC_INLINE_CODE 32768u

struct exec_callbacks {
    void *arg;
    uint32_t flags;  /* of enum run_flag, besides those that the body asks for */
    bool own_bounds; /* the body's time and memory are within the caller's own bounds */
    bool no_files;   /* what the program leaves in its workspace is nobody's */
    /* Or NULL; may come before exec_start returns. */
    void (*on_start)(void *arg, uint64_t number, const char *id);
    /* Or NULL. `number` is that of the event in the record. */
    void (*on_output)(void *arg, int stream, uint64_t number, const char *data, size_t len);
    /* The program has taken of its stdin, or has closed it. When this is not NULL, stdin stays
     * open after what the body holds, for exec_stdin. */
    void (*on_stdin)(void *arg);
    /* Once; `why` is NULL when there is a result. The exec is gone after it. */
    void (*on_done)(void *arg, struct exec *x, const struct err *why);
};

/* The checks of contract 1 in its order (after the table of fields), then the engine's. -1 with a
 * problem; nothing was started then. */
int exec_start(struct call *c, const json_t *body, const struct exec_callbacks *cb,
               struct exec **ret, struct problem *p);
const char *exec_id(const struct exec *x);
const struct run *exec_run(const struct exec *x);
/* In on_done. The result object of api.md; without stdout and stderr for those who had them as a
 * stream. */
void exec_result(const struct exec *x, struct rope *to);
const struct buf *exec_end(const struct exec *x);
/* More for the program's stdin; no bytes are its end. For those who have on_stdin. */
void exec_stdin(struct exec *x, const void *data, size_t len);
size_t exec_stdin_backlog(const struct exec *x);
void exec_signal(struct exec *x, int sig);
uint64_t exec_last(const struct exec *x); /* the number of the last event */
/* The consumer is slow; it is gone. After exec_leave no callback comes; the program is ended unless
 * the request asked to go on. */
void exec_hold(struct exec *x, bool hold);
void exec_leave(struct exec *x);

/* execute.c: the whole way from a body that execute_schema would take to the reply, for those who
 * say the result in words of their own. */
struct execute_way {
    uint32_t flags;
    bool own_bounds, no_files;
    /* The reply, and its status. */
    int (*put)(const struct call *c, const struct exec *x, struct rope *to);
};
void execute_once(struct call *c, const json_t *body, const struct execute_way *way);
