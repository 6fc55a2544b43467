#pragma once
/* The events of a record as a reply: SSE, or NDJSON where the request asks for that. For api/ only.
 */

#include "api/call.h"

struct record;
struct play;

/* What the request wants: by its Accept header. */
enum events_form { EVENTS_NONE, EVENTS_SSE, EVENTS_LINES };
enum events_form events_wanted(const struct call *c);

/* Replies with the events after number `after`, until the record ends. `play` is the execution that
 * this request started (or NULL): it is held while the client is slow, and left when it goes. */
void events_stream(struct call *c, struct record *rec, enum events_form form, uint64_t after,
                   struct play *play);
