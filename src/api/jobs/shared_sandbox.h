#pragma once
/* The live sandbox in which a tenant's notebooks share their files, one for each profile. Dialects
 * whose clients mean the same files say the same `kept_as`, and find the same sandbox. For api/
 * only. */

#include "api/jobs/aliases.h"

struct shared_kind {
    const char *kept_as; /* the part of the alias before the name; it outlives the server */
    alias_fill *fill;    /* the dialect's: shared_fill, with how long such a sandbox may be idle */
};

/* `then` with it, made if there is none (aliases.h). `profile` NULL: that of the default profile.
 */
void shared_use(struct call *c, const struct shared_kind *kind, const char *profile,
                alias_fn *then);
void shared_fill(const struct call *c, uint32_t idle_s, struct live_request *q);
/* What a sandbox for a single kernel is like: it lives as long as sandboxes may. */
void shared_fill_single(const struct call *c, const char *profile, uint32_t idle_s,
                        struct live_request *q);
