#pragma once
/* The tries behind probe.h: each layer of isolation is tried in a child, which notes what it saw.
 * For probe.c only. */

#include "sandbox/diagnose.h"
#include "sandbox/egress/facts.h"
#include "sandbox/probe.h"

/* One layer as a child saw it. */
struct probe_trial {
    bool tried;
    int errnum; /* 0: it works */
    enum diagnose_step step;
};

/* The page that we share with the children. */
struct probe_trials {
    struct probe_trial layers[PROBE_LAYERS_];
    struct probe_result cgroup;
    struct egress_finding egress;
};

struct probe_request {
    const struct idmap *ids;
    enum cgroup_kind want;
    const struct cgroup_root *have; /* groups that are open already are not tried; or NULL */
};
/* Fills `t`, which is shared with the children; what was not tried stays so. `map_err` says why ids
 * could not be mapped. */
void probe_trials_run(struct probe_trials *t, const struct probe_request *q, struct err *map_err);
bool probe_trial_works(const struct probe_trials *t, enum probe_layer l);
