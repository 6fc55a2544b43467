#pragma once
/* The connections of a tenant's sandboxes together: of the places that all sandboxes share, each
 * tenant may have as many as are left free. So however many sandboxes one has, there are places for
 * the next one's. */

#include "net/bucket.h"

#include <stdbool.h>
#include <stdint.h>

struct gate;

struct gate_tenant {
    struct gate_tenant *next;
    uint64_t id;
    unsigned sandboxes;
    unsigned outside; /* connections of all of them, those on their way included */
    /* New ones. The host keeps a port of its own for a minute behind each that is over, of 28,232
     * for one destination as a rule. */
    struct net_bucket new_bucket;
};

/* For one sandbox more, or less. Without sandboxes it is remembered for as long as its rate is not
 * that of a new one. */
struct gate_tenant *tenant_join(struct gate *g, uint64_t id);
void tenant_leave(struct gate *g, struct gate_tenant *t);

/* Whether there is a place for one more connection of a sandbox of this tenant that has `own`. */
bool tenant_has_room(const struct gate *g, const struct gate_tenant *t, unsigned own);
