#pragma once
/* What somebody wants of a live sandbox; kept with it for its life. */

#include "engine/core/stage.h"
#include "wire/limits.h"

#include <stdbool.h>
#include <stdint.h>

struct err;
struct live;
struct tree;

struct live_request {
    char *tenant, *profile, *name; /* owned; name may be NULL */
    char *metadata;                /* owned: a JSON object of strings */
    char *alias;                   /* owned: what a dialect finds it by, for its life; or NULL */
    char *payer;                   /* owned: see on_cpu_account of struct lives; or NULL */
    char *env;                     /* owned: a JSON object of strings, for every kernel; or NULL */
    struct limits limits;          /* 0: the default of live sandboxes */
    struct network_terms *network; /* owned: what it may reach; NULL: nothing, from the first */
    struct host_bind *binds;       /* owned: directories of the host in its workspace */
    unsigned nbinds;
    char *binds_json;          /* owned: the same as it was asked for; or NULL */
    struct input_file *inputs; /* owned: put into the workspace before it is ready */
    unsigned ninputs;
    uint32_t ttl_s, idle_s;  /* 0: the default */
    unsigned most_of_tenant; /* 0: no bound but the operator's */
    struct tree *tree;       /* used: of its tenant's profile; live_new finds it */
    bool listens;            /* it gets a port of its own, from those who serve it */
    bool own_bounds;         /* its times, and its cells', were held against other maxima */
};
void live_request_done(struct live_request *q);

/* Once; `why` is NULL when the sandbox is ready. */
typedef void live_ready_fn(void *arg, struct live *l, const struct err *why);
