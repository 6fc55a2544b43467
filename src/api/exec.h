#pragma once
/* One execution that a request asked for, from the checked body to the result: its files in and
 * out, its record, its line in the audit log. One-shot, stream and batch are thin users of this. */

#include "api/call.h"

struct exec;

extern const struct schema execute_schema;

struct exec_callbacks {
    void *arg;
    /* Or NULL. `number` is that of the event in the record. */
    void (*on_output)(void *arg, int stream, uint64_t number, const char *data, size_t len);
    /* Once; `why` is NULL when there is a result. The exec is gone after it. */
    void (*on_done)(void *arg, struct exec *x, const struct err *why);
};

/* The checks of contract 1 in its order (after the table of fields), then the engine's. -1 with a
 * problem; nothing was started then. */
int exec_start(struct call *c, const json_t *body, const struct exec_callbacks *cb,
               struct exec **ret, struct problem *p);
const char *exec_id(const struct exec *x);
/* The result object of api.md; without stdout and stderr for those who had them as a stream. */
void exec_result(const struct exec *x, bool no_output, struct buf *to);
/* The consumer is slow; it is gone. After exec_leave no callback comes; the program is ended unless
 * the request asked to go on. */
void exec_hold(struct exec *x, bool hold);
void exec_leave(struct exec *x);
