#pragma once
/* The live sandbox in which a tenant's notebooks share their files, one for each profile. Every
 * dialect whose clients mean these files finds the same sandbox here. For api/ only. */

#include "api/jobs/aliases.h"

/* Calls `then` with the sandbox, which is made if there is none (aliases.h). `profile` NULL: the
 * sandbox of the default profile. At a sandbox's own port it is that one, whatever the profile. */
void shared_use(struct call *c, const char *profile, alias_fn *then);
/* What a sandbox for a single kernel is like: it lives as long as sandboxes may. */
void shared_fill_single(const struct call *c, const char *profile, struct live_request *q);
