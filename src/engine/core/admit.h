#pragma once
/* Whether a guest may come in: its limits against the operator's maxima, and whether there is room
 * to wait. What is refused is refused with the value, what is allowed, and what to do. */

#include "config/config.h"

#include <stdint.h>

struct profile_pool;

/* What is 0 becomes the default, and nothing is above the maximum, unless the default is; a maximum
 * of 0 is none. Limits of other scopes are left alone. */
int limits_settle(const struct limits *defaults, const struct limits *maxima, unsigned scopes,
                  struct limits *l, struct err *e);

/* A place in the queue, unless it can begin at once. In a full queue another tenant's newest may
 * have to give way: queue.h says when. */
int admit_place(struct profile_pool *p, const struct limits *l, uint64_t files_bytes,
                const char *tenant, struct err *e);
