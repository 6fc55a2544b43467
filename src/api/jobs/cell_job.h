#pragma once
/* An execution in a live kernel that a request asked for: its record, its line in the audit log.
 * Whoever wants to see it as it goes follows the record (records.h). For api/ only. */

#include "api/core/call.h"
#include "api/jobs/events.h"
#include "engine/live/live.h"

struct cell_job;
struct record;

extern const struct schema cell_schema;

/* The sandbox that the path names; NULL: 404 or 410 was replied. */
struct live *call_live(struct call *c);
/* The kernel that `id` names (NULL: the default one); NULL: the client has its reply. */
struct kernel *call_kernel(struct call *c, struct live *l, const char *id);
/* `stream`: somebody sees the events, and can answer input(). -1 with a problem. `on_done` comes
 * once, unless cell_job_leave came before; the result is in the record then, and the job is gone.
 */
struct cell_job_options {
    struct live *live;
    const json_t *body;       /* checked against cell_schema */
    const struct body *large; /* what the body is from, if that was large; or NULL */
    bool stream;
    bool goes_on;                /* without its client, whatever the body says */
    const char *op, *tag;        /* see cell_request; or NULL */
    struct buf *extra;           /* see cell_request, which takes it; or NULL */
    const uint8_t *sha256;       /* of the code, when it is known; or NULL */
    const struct limits *limits; /* within the caller's own bounds; NULL: the body's */
    void (*on_done)(void *arg, struct record *rec, const struct err *why);
    void *arg;
};
int cell_job_start(const struct caller *who, const struct cell_job_options *o,
                   struct cell_job **ret, struct problem *p);
/* The code, as a route's `prepare`. */
void cell_job_prepare(struct body *b, const json_t *request);
const char *cell_job_id(const struct cell_job *x);
struct record *cell_job_record(struct cell_job *x);
/* The cell, while its event "end" is told; NULL at any other time. */
const struct cell *cell_job_ended(const struct cell_job *x);
void cell_job_hold(struct cell_job *x, bool hold);
struct events_source cell_job_source(struct cell_job *x);
/* From an earlier server: see live_heir. */
void cell_job_inherit(void *arg, struct live *l, struct cell *c, uint64_t number);
/* The client is gone: the execution is interrupted, unless the request asked to go on. */
void cell_job_leave(struct cell_job *x);
