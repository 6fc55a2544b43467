#pragma once
/* An execution in a live kernel that a request asked for: its record, its line in the audit log.
 * Whoever wants to see it as it goes follows the record (records.h). For api/ only. */

#include "api/core/call.h"
#include "api/jobs/events.h"
#include "engine/live/live.h"

struct play;
struct record;

extern const struct schema cell_schema;

/* 404 or 410 was replied when it is NULL. */
struct live *call_live(struct call *c);
/* The kernel that `id` names (NULL: the default one), or a reply. */
struct kernel *call_kernel(struct call *c, struct live *l, const char *id);
/* `stream`: somebody sees the events, and can answer input(). -1 with a problem. `on_done` comes
 * once, unless play_leave came before; the result is in the record then, and the play is gone. */
struct play_options {
    bool stream;
    bool goes_on;                       /* without its client, whatever the body says */
    const char *op, *extra, *tag;       /* see cell_request; or NULL */
    const struct config_limits *limits; /* within the caller's own bounds; NULL: the body's */
    void (*on_done)(void *arg, struct record *rec, const struct err *why);
    void *arg;
};
int play_start(struct call *c, struct live *l, const json_t *body, const struct play_options *o,
               struct play **ret, struct problem *p);
const char *play_id(const struct play *x);
struct record *play_record(struct play *x);
void play_hold(struct play *x, bool hold);
struct events_source play_source(struct play *x);
/* From an earlier server: see live_heir. */
void play_inherit(void *arg, struct live *l, struct cell *c, uint64_t number);
/* The client is gone: the execution is interrupted, unless the request asked to go on. */
void play_leave(struct play *x);
