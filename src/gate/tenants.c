/* See tenants.h. */

#include "gate/tenants.h"

#include "base/buf.h"
#include "base/list.h"
#include "gate/gate.h"

#include <stdlib.h>

struct gate_tenant *tenant_join(struct gate *g, uint64_t id) {
    struct gate_tenant *t = g->tenants;
    while (t && t->id != id)
        t = t->next;
    if (!t) {
        t = xcalloc(1, sizeof *t);
        t->id = id;
        LIST_PUSH(&g->tenants, t, next);
    }
    t->sandboxes++;
    return t;
}

void tenant_leave(struct gate *g, struct gate_tenant *t) {
    if (--t->sandboxes)
        return;
    LIST_REMOVE(&g->tenants, t, next);
    free(t);
}

/* A tenant's sandboxes share in the same way what is left to it. */
bool tenant_has_room(const struct gate *g, const struct gate_tenant *t, unsigned own) {
    return g->outside + t->outside + own < GATE_OUTSIDE_MOST;
}
