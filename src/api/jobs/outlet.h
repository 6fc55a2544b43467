#pragma once
/* Where the reply of a piece of work goes: to its client while that is there, and into what is kept
 * for its Idempotency-Key. Work that has a key goes on when its client leaves. Embedded in the
 * work's own state. For api/ only. */

#include "api/core/shares.h"
#include "api/jobs/replays.h"

struct outlet {
    struct call *call;       /* borrowed; NULL when the client has left */
    struct replay *replay;   /* NULL when there is no key, and at the end */
    struct caller who;       /* whose it is, also when the call is gone */
    bool counted;            /* holds a place of the key's concurrent ones, which was the call's */
    struct share_item alone; /* among those of its tenant, when the client has left */
};

/* False when the call is answered already, or will be by the first request with its key. */
bool outlet_open(struct call *c, struct outlet *ret);
/* Whatever has not come to its end is not kept. */
void outlet_done(struct outlet *o);

/* The whole reply; a rope is taken. */
void outlet_rope(struct outlet *o, int status, struct rope *json, const char *execution);
void outlet_json(struct outlet *o, int status, const struct buf *json, const char *execution);
/* Or this instead: not kept. */
void outlet_problem(struct outlet *o, const struct problem *p);
/* Or in pieces; the headers of a stream are the caller's. `type` is a constant. */
void outlet_stream(struct outlet *o, const char *type, const char *execution, const char *sign);
void outlet_write(struct outlet *o, const void *data, size_t len);
void outlet_write_rope(struct outlet *o, struct rope *rope); /* takes it */
void outlet_sign(struct outlet *o, const char *sign);        /* to the client only */
void outlet_end(struct outlet *o);
/* Or this: the caller streams the events of this execution or command. */
void outlet_refer(struct outlet *o, const char *execution);
bool outlet_is_full(const struct outlet *o); /* the client is slow */

/* The client has left. True when the work goes on without it: the call's state is no longer the
 * call's, and the work frees itself at its end. */
bool outlet_leave(struct outlet *o);
