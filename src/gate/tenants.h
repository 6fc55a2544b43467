#pragma once
/* The connections of a tenant's sandboxes together: of the places that all sandboxes share, each
 * tenant may have as many as are left free. So however many sandboxes one has, there are places for
 * the next one's. */

#include <stdbool.h>
#include <stdint.h>

struct gate;

struct gate_tenant {
    struct gate_tenant *next;
    uint64_t id;
    unsigned sandboxes;
    unsigned outside; /* connections of all of them, those on their way included */
};

/* For one sandbox more, or less; without sandboxes it is freed. */
struct gate_tenant *tenant_join(struct gate *g, uint64_t id);
void tenant_leave(struct gate *g, struct gate_tenant *t);

/* Whether there is a place for one more connection of a sandbox of this tenant that has `own`. */
bool tenant_has_room(const struct gate *g, const struct gate_tenant *t, unsigned own);
