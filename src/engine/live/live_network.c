/* See live_network.h. */

#include "engine/live/live_network.h"

#include "base/buf.h"
#include "engine/process/live_state.h"

const char *live_network(const struct live *l) {
    return l->req.network ? l->req.network->json.data : "\"none\"";
}

int live_network_set(struct live *l, struct network_terms **t, network_fn *done, void *arg,
                     struct err *e) {
    struct network_terms *before = l->req.network;
    if (!before && (*t)->is_none)
        return 0;
    if (network_set(l->sandbox, *t, done, arg, e) < 0)
        return -1;
    l->req.network = *t;
    *t = NULL;
    network_terms_free(before);
    buf_clear(&l->lasting);
    live_changed(l);
    return 1;
}

void live_network_leave(struct live *l, const void *arg) {
    if (l->sandbox)
        network_leave(l->sandbox, arg);
}
