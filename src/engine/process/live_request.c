/* See live_request.h. */

#include "engine/process/live_request.h"

#include "base/fd.h"
#include "engine/core/trees.h"
#include "engine/network/terms.h"

#include <stdlib.h>

void live_request_done(struct live_request *q) {
    free(q->tenant);
    free(q->profile);
    free(q->name);
    free(q->metadata);
    free(q->alias);
    free(q->payer);
    free(q->env);
    network_terms_free(q->network);
    inputs_free(q->inputs, q->ninputs);
    for (unsigned i = 0; i < q->nbinds; i++) {
        free(q->binds[i].allowed);
        free(q->binds[i].below);
        free(q->binds[i].path);
    }
    tree_leave(q->tree);
    free(q->binds);
    free(q->binds_json);
    *q = (struct live_request){0};
}
