/* See live_request.h. */

#include "engine/process/live_request.h"

#include "base/fd.h"

#include <stdlib.h>

void live_request_done(struct live_request *q) {
    free(q->tenant);
    free(q->profile);
    free(q->name);
    free(q->metadata);
    free(q->alias);
    free(q->payer);
    free(q->env);
    for (unsigned i = 0; i < q->ninputs; i++) {
        free(q->inputs[i].path);
        fd_close(&q->inputs[i].fd);
    }
    free(q->inputs);
    *q = (struct live_request){0};
}
