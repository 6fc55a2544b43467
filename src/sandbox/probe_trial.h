#pragma once
/* The tries behind probe.h: each layer of isolation is tried in a child, which notes what it saw.
 * For probe.c only. */

#include "sandbox/diagnose.h"
#include "sandbox/probe.h"

/* One layer as a child saw it. */
struct trial {
    bool tried;
    int errnum; /* 0: it works */
    enum diagnose_step step;
};

/* The page that we share with the children. */
struct trials {
    struct trial layers[PROBE_LAYERS_];
    struct probe_result cgroup;
};

struct trial_request {
    const struct idmap *ids;
    enum cgroup_kind want;
    const struct cgroup_root *have; /* groups that are open already are not tried; or NULL */
};
/* Fills `t`, which is shared with the children; what was not tried stays so. `map_err` says why ids
 * could not be mapped. */
void trials_run(struct trials *t, const struct trial_request *q, struct err *map_err);
bool trial_works(const struct trials *t, enum probe_layer l);
