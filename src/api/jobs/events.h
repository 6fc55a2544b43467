#pragma once
/* The events of a record as a reply: SSE, or NDJSON where the request asks for that. For api/ only.
 */

#include "api/core/call.h"

struct record;

extern const struct schema events_query;

/* What the request wants: by its Accept header. */
enum events_form { EVENTS_NONE, EVENTS_SSE, EVENTS_LINES };
enum events_form events_wanted(const struct call *c);

#define EVENTS_ALIVE_MS 10000 /* between two signs of life on a quiet stream */
/* Such a sign, which is no event. */
const char *events_sign(bool lines);

/* The number after which the request wants events: `after` of the query, or Last-Event-ID. False: a
 * reply was sent. */
bool events_after(struct call *c, uint64_t *ret);

/* What this request has started, and what says the events: it is held while the client is slow, and
 * left when the client goes before the end. */
struct events_source {
    void *arg; /* NULL: nothing was started */
    void (*hold)(void *arg, bool hold);
    void (*leave)(void *arg);
};
/* Replies with the events after number `after`, until the record ends. */
void events_stream(struct call *c, struct record *rec, enum events_form form, uint64_t after,
                   const struct events_source *from);
