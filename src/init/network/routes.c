/* See routes.h. An address stays for a while after its last connection, so that what is
 * still said about that one arrives; the oldest without one makes room. That is minutes later,
 * since only so many destinations a minute are allowed. */

#include "init/network/routes.h"

#include "init/internal.h"
#include "sandbox/egress/anyip.h"

#include <errno.h>

_Static_assert(ROUTES > LINKS, "one of them is always free");

static bool is_connected(const struct network *n, const struct net_addr *to) {
    for (unsigned i = 0; i < n->top; i++) {
        if (n->links[i].state != LINK_FREE && net_addr_same(&n->links[i].to.at, to))
            return true;
    }
    return false;
}

/* Where the next one goes. */
static struct net_addr *make_room(struct network *n) {
    struct route_table *t = &n->routes;
    struct err ignored;
    if (t->n < ROUTES)
        return &t->to[t->n++];
    while (is_connected(n, &t->to[t->oldest]))
        t->oldest = (t->oldest + 1) % ROUTES;
    struct net_addr *at = &t->to[t->oldest];
    (void)anyip_remove_v6(at, &ignored);
    t->oldest = (t->oldest + 1) % ROUTES;
    return at;
}

int routes_reach(struct network *n, const struct net_addr *to) {
    struct route_table *t = &n->routes;
    struct err e;
    if (net_addr_is_v4(to))
        return 0;
    for (unsigned i = 0; i < t->n; i++) {
        if (net_addr_same(&t->to[i], to))
            return 0;
    }
    if (anyip_add_v6(to, &e) < 0)
        return e.code;
    *make_room(n) = *to;
    return 0;
}
