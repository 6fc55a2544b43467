#pragma once
/* Who may have a live sandbox, of which profile, and for how long; for live/ only. */

#include "base/err.h"

#include <stdint.h>

struct engine;
struct live_request;
struct profile_pool;

/* Fills in times and limits, chooses the pool and sees to a place in its queue. */
int live_admit(struct engine *g, struct live_request *q, struct profile_pool **ret,
               uint64_t *ret_files, struct err *e);
/* How long it lives, and how long it may be idle. */
int live_settle_time(struct engine *g, struct live_request *q, struct err *e);
