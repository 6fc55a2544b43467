#pragma once
/* Live sandboxes that a request makes or ends, in whatever dialect. For api/ only. */

#include "api/jobs/outlet.h"
#include "engine/live/live.h"

/* With what the caller's key says: whose it is, who pays, how many there may be. */
struct live_request live_request_for(const struct caller *who);
/* `read` fills in the request or says what is wrong with it; what is in *q is released in any case.
 * `reply` answers when the sandbox is ready. */
void live_requests_make(struct call *c,
                        int (*read)(struct call *c, struct live_request *q, struct problem *p),
                        void (*reply)(struct outlet *o, struct live *l));
/* `reply` (NULL: 204) when all of it is gone. */
void live_requests_end(struct call *c, struct live *l, void (*reply)(struct call *c));
