#pragma once
/* One execution that a request asked for, from the checked body to the result: its files in and
 * out, its record, its line in the audit log. One-shot, stream and batch are thin users of this. */

#include "api/core/call.h"
#include "api/jobs/events.h"
#include "engine/oneshot/result.h"
#include "engine/oneshot/run.h"

struct oneshot;
struct record;

extern const struct schema execute_schema, run_schema;
extern const struct schema run_message_schema; /* run_schema over a WebSocket */

/* What to run, and who is told. */
struct oneshot_options {
    const json_t *body; /* as of execute_schema */
    bool shows;   /* the body is as of run_schema: its events and its result are those of a cell */
    bool goes_on; /* without its client, whatever the body says */
    const struct body *large; /* what the body is a part of, if that was large; or NULL */
    void *arg;
    uint32_t flags;   /* of enum run_flag, besides those that the body asks for */
    bool own_bounds;  /* the body's time and memory are within the caller's own bounds */
    bool all_network; /* it gets all that is granted, whatever the body says */
    bool no_files;    /* what the program leaves in its workspace is nobody's */
    /* Or NULL; may come before oneshot_start returns. */
    void (*on_start)(void *arg, uint64_t number, const char *id);
    /* Or NULL. `number` is that of the event in the record. */
    void (*on_output)(void *arg, int stream, uint64_t number, const char *data, size_t len);
    /* The program has taken of its stdin, or has closed it. When this is not NULL, stdin stays
     * open after what the body holds, for oneshot_stdin. */
    void (*on_stdin)(void *arg);
    /* Or NULL. Once; `why` is NULL when there is a result. The oneshot is gone after it. */
    void (*on_done)(void *arg, struct oneshot *x, const struct err *why);
};

/* The checks of the Code Interpreter API in its order (after the table of fields), then the
 * engine's. -1 with a problem; nothing was started then. */
int oneshot_start(const struct caller *who, const struct oneshot_options *o, struct oneshot **ret,
                  struct problem *p);
/* The code and the files of a body, as a route's `prepare`. */
void oneshot_prepare(struct body *b, const json_t *request);
const char *oneshot_id(const struct oneshot *x);
const struct run *oneshot_run(const struct oneshot *x);
/* In on_done. The result object (docs/http.md); without stdout and stderr for those who had them as
 * a stream. */
void oneshot_result(const struct oneshot *x, struct rope *to);
const struct buf *oneshot_end(const struct oneshot *x);
/* More for the program's stdin; no bytes are its end. For those who have on_stdin. */
void oneshot_stdin(struct oneshot *x, const void *data, size_t len);
size_t oneshot_stdin_backlog(const struct oneshot *x);
void oneshot_signal(struct oneshot *x, int sig);
/* Its record, for those who follow that: its events are all there, and its end. */
struct record *oneshot_record(struct oneshot *x);
struct events_source oneshot_source(struct oneshot *x);
uint64_t oneshot_last(const struct oneshot *x); /* the number of the last event */
/* The consumer is slow; it is gone. After oneshot_leave no callback comes; the program is ended
 * unless the request asked to go on. */
void oneshot_hold(struct oneshot *x, bool hold);
void oneshot_leave(struct oneshot *x);
