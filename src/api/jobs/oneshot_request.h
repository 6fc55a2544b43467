#pragma once
/* The body of a request for a program, as the engine takes it; for oneshot.c only. */

#include "api/jobs/oneshot.h"

/* The checks of the Code Interpreter API in its order. -1 with a problem; `q` is to be done with
 * either way. */
int oneshot_read_request(const struct caller *who, const struct oneshot_options *o,
                         struct run_request *q, struct problem *p);
