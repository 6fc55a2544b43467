#pragma once
/* All that a nursery may tell the warden: see reports.c. */

#include "warden/warden.h"
#include "wire/codec.h"

enum nursery_stage {
    NURSERY_BIRTH, /* its first stage builds the root; it has no process of its own yet */
    NURSERY_BORN,
    NURSERY_STAGES_
};

/* False when it may not say that now, or what it says makes no sense. It is to be ended then. */
bool reports_serve(struct nursery_child *n, struct wire_in *in);
bool reports_allows(enum wire_type type, enum nursery_stage stage);
/* The profile is in another state now; whoever waits for it is told. */
void reports_state(struct nursery_child *n, const struct n_state *m);
