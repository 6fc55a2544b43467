/* See fresh.h. */

#include "api/mcp/fresh.h"

#include "api/core/api_state.h"
#include "api/mcp/place.h"

#include <stdio.h>
#include <stdlib.h>

struct fresh {
    struct mcp_call *call;
    mcp_handler *then;
    char sandbox[ID_MAX];
};

static void fresh_free(void *state) {
    struct fresh *x = state;
    const struct caller *who = &mcp_who(x->call)->caller;
    struct err e;
    struct live *l = live_find(who->api->o.engine, who->tenant, x->sandbox, &e);
    if (l) {
        kernel_unwait(l, x);
        live_release(l);
    }
    free(x);
}

static void fresh_on_kernel(void *arg, struct kernel *k, const struct err *why) {
    const struct fresh *x = arg;
    (void)k;
    if (why)
        place_fail(x->call, why);
    else
        x->then(x->call);
}

void fresh_kernel(struct mcp_call *c, struct live *l, mcp_handler *then) {
    struct err e;
    struct kernel *k = kernel_find(l, NULL, &e);
    struct fresh *x = xcalloc(1, sizeof *x);
    *x = (struct fresh){.call = c, .then = then};
    snprintf(x->sandbox, sizeof x->sandbox, "%s", live_id(l));
    live_hold(l);
    mcp_keep(c, x, fresh_free);
    mcp_on_cancel(c, mcp_answer);
    err_user(&e, "sandbox_paused", "the sandbox is paused");
    if (k && !live_is_paused(l))
        kernel_restart(k, fresh_on_kernel, x);
    else
        place_fail(c, &e);
}
