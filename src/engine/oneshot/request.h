#pragma once
/* What is asked for: which profile it gets, and whether it may run here; for oneshot/ only. */

#include "engine/oneshot/run.h"

struct profile_pool;

/* Fills in the limits, chooses the pool and sees to a place in its queue. */
int run_admit(struct engine *g, struct run_request *q, struct profile_pool **ret, struct err *e);
const char *run_tenant(const struct run_request *q);
