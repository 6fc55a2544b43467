/* See engine.h: the engine's birth, and what the warden tells it. */

#include "engine/core/engine.h"

#include "base/buf.h"
#include "base/log.h"
#include "engine/core/budget.h"
#include "engine/core/reload.h"
#include "engine/core/sandbox.h"
#include "wire/codec.h"

#include <errno.h>
#include <jansson.h>
#include <unistd.h>

#define READING_NS 1500000u /* of a turn */
#define LISTING_NS 1500000u

/* When the first W_RESTARTS comes, all that an earlier server kept has come. */
static void settle(struct engine *g) {
    void (*fn)(void *arg) = g->on_settled;
    g->on_settled = NULL;
    if (fn)
        fn(g->settled_arg);
}

/* This server may have no live sandboxes, and an earlier one left some. */
static void take_kept(struct engine *g, struct wire_in *in) {
    struct err e;
    if (g->on_kept) {
        g->on_kept(g, in);
        return;
    }
    err_set(&e, ENOTSUP, "this server has no live sandboxes");
    struct w_kept m;
    struct err unread;
    w_kept_get(in, &m, &unread);
    sandbox_refuse(g, m.sandbox, &e);
}

static void take_failed(struct engine *g, struct wire_in *in) {
    struct w_failed m;
    struct err e;
    if (w_failed_get(in, &m, &e) == 0 && m.profile < g->config.nprofiles)
        pool_failed(&g->pools[m.profile], m.why);
}

static void take_exited(struct engine *g, struct wire_in *in) {
    struct w_exited m;
    struct err e;
    struct sandbox *s = w_exited_get(in, &m, &e) < 0 ? NULL : sandbox_find(g, m.sandbox);
    if (s && s->guest)
        s->guest->kind->exited(s->guest->owner, m.number, (int)m.status);
}

static void take_gone(struct engine *g, struct wire_in *in) {
    struct w_gone m;
    struct err e;
    struct sandbox *s = w_gone_get(in, &m, &e) < 0 ? NULL : sandbox_find(g, m.sandbox);
    if (s)
        sandbox_gone(s);
}

static void take_forget(struct engine *g, struct wire_in *in) {
    struct w_forget m;
    struct err e;
    if (w_forget_get(in, &m, &e) == 0 && m.slot < config_places(&g->config))
        cgroup_fds_done(&g->cgroups[m.slot]);
}

static void on_warden(struct chan *c, struct wire_in *in) {
    struct engine *g = c->arg;
    switch ((int)in->type) {
    case WIRE_W_MADE:
        sandbox_made(g, in);
        break;
    case WIRE_W_FAILED:
        take_failed(g, in);
        break;
    case WIRE_W_EXITED:
        take_exited(g, in);
        break;
    case WIRE_W_KEPT:
        take_kept(g, in);
        break;
    case WIRE_W_KERNEL_MADE:
        sandbox_more(g, in);
        break;
    case WIRE_W_KERNEL_FAILED:
        sandbox_no_more(g, in);
        break;
    case WIRE_W_GONE:
        take_gone(g, in);
        break;
    case WIRE_W_FORGET:
        take_forget(g, in);
        break;
    case WIRE_W_STRANDED:
        budget_stranded(g, in);
        break;
    case WIRE_W_PROFILE:
        pool_profile(g, in);
        break;
    case WIRE_W_RELOAD:
        engine_reload(g, in);
        break;
    case WIRE_W_LAYER:
        about_layer(&g->about, in);
        break;
    case WIRE_W_GATE:
        network_take_gate(g, in);
        break;
    case WIRE_W_RESTARTS:
        about_restarts(&g->about, in);
        settle(g);
        break;
    default:
        log_error("warden sent message=%s", wire_type_name(in->type));
    }
}

/* Without the warden there is no engine. */
static void on_warden_gone(struct chan *c, const struct err *why) {
    struct engine *g = c->arg;
    (void)why;
    loop_stop(g->loop);
}

static void on_look_again(struct timer *t) {
    pool_freed(t->arg);
}

int engine_init(struct engine *g, struct loop *l, int config_fd, int *warden_fd, struct err *e) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    *g = (struct engine){.loop = l, .max_making = cores > 1 ? 2 * (unsigned)cores : 2};
    loop_share_init(&g->reading, l, READING_NS);
    loop_share_init(&g->listing, l, LISTING_NS);
    json_object_seed(0); /* before there are threads that use it */
    about_init(&g->about);
    network_init(g);
    if (config_unpack(config_fd, &g->config, e) < 0)
        return -1;
    g->network = network_rules_read(&g->config, e);
    if (!g->network)
        return -1;
    g->look_again = (struct timer){.fn = on_look_again, .arg = g};
    g->cgroups = xcalloc(config_places(&g->config), sizeof *g->cgroups);
    for (unsigned i = 0; i < config_places(&g->config); i++)
        cgroup_fds_init(&g->cgroups[i]);
    for (unsigned i = 0; i < g->config.nprofiles; i++)
        pool_init(g, i);
    g->warden = (struct chan){
        .fd = -1, .on_msg = on_warden, .on_gone = on_warden_gone, .arg = g, .takes_cut = true};
    return chan_init(&g->warden, l, warden_fd, e);
}
