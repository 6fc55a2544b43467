/* See tenants.h. */

#include "gate/tenants.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/list.h"
#include "gate/gate.h"

#include <stdlib.h>

static void forget_old(struct gate *g) {
    for (struct gate_tenant **at = &g->tenants; *at;) {
        if ((*at)->sandboxes == 0 && net_bucket_is_full(&(*at)->new_bucket, now_ms()))
            free(LIST_POP(at, next));
        else
            at = &(*at)->next;
    }
}

struct gate_tenant *tenant_join(struct gate *g, uint64_t id) {
    forget_old(g);
    struct gate_tenant *t = g->tenants;
    while (t && t->id != id)
        t = t->next;
    if (!t) {
        t = xcalloc(1, sizeof *t);
        t->id = id;
        t->new_bucket =
            (struct net_bucket)NET_BUCKET(NET_TENANT_NEW_PER_SECOND, NET_TENANT_NEW_BURST);
        LIST_PUSH(&g->tenants, t, next);
    }
    t->sandboxes++;
    return t;
}

void tenant_leave(struct gate *g, struct gate_tenant *t) {
    t->sandboxes--;
    forget_old(g);
}

/* A tenant's sandboxes share in the same way what is left to it. */
bool tenant_has_room(const struct gate *g, const struct gate_tenant *t, unsigned own) {
    return g->outside + t->outside + own < GATE_OUTSIDE_MOST;
}
