/* See gate.h. Two channels of our own side: the warden's, over which servers and configurations
 * come, and the present server's. What a sandbox has does not depend on either: it goes on with the
 * policy that it has when the server dies, and the next server attaches it again. */

#include "gate/gate.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "gate/attach.h"
#include "gate/host.h"
#include "gate/links.h"
#include "gate/resolver.h"

#include <errno.h>
#include <string.h>

#define READING_NS  (2 * NS_PER_MS)
#define COUNT_MS    1000
#define UNREAD_MOST (1u << 20) /* bytes that wait for a server; then notes and counts are lost */

void gate_tell_server(struct gate *g, const struct wire_out *o) {
    if (g->server.queued < UNREAD_MOST)
        chan_send(&g->server, o);
}

struct net_own gate_own(const struct gate *g) {
    return host_own(g->host);
}

static void gate_on_count(struct timer *t) {
    struct gate *g = t->arg;
    struct wire_out o;
    for (struct attachment *a = g->all; a; a = a->next)
        links_tell_open(a, true);
    if (memcmp(&g->counts, &g->told, sizeof g->counts) == 0)
        return;
    g->told = g->counts;
    g_counts_put(&o, &g->counts);
    gate_tell_server(g, &o);
}

void gate_counted(struct gate *g) {
    g->counts.open = g->outside;
    if (!g->count_timer.place)
        loop_timer_in_ms(g->loop, &g->count_timer, COUNT_MS);
}

static void server_on_msg(struct chan *c, struct wire_in *in) {
    struct gate *g = c->arg;
    struct err e;
    if (attach_serve(g, in, &e) == 0)
        return;
    log_error("server sent what it may not message=%s error=%s", wire_type_name(in->type),
              log_text(e.text));
    chan_done(c); /* it asks the warden for nothing; the next one gets another */
}

static void server_on_gone(struct chan *c, const struct err *why) {
    (void)why;
    chan_done(c);
}

static int take_server(struct gate *g, struct wire_in *in, struct err *e) {
    struct g_server m;
    if (g_server_get(in, &m, e) < 0)
        return -1;
    AUTO_FD fd = wire_keep(in, m.server);
    chan_done(&g->server);
    g->server =
        (struct chan){.fd = -1, .on_msg = server_on_msg, .on_gone = server_on_gone, .arg = g};
    if (chan_init(&g->server, g->loop, &fd, e) < 0)
        return -1;
    g->told = (struct g_counts){0};
    gate_counted(g);
    return 0;
}

static int take_config(struct gate *g, int config_fd, int resolv_fd, struct err *e) {
    struct config next;
    if (config_unpack(config_fd, &next, e) < 0)
        return -1;
    config_done(&g->config);
    g->config = next;
    log_init("gate", (enum log_level)next.log_level);
    log_set_format(next.log_format);
    return resolver_use(g->resolver, next.network_resolvers, resolv_fd, e);
}

static int take_config_again(struct gate *g, struct wire_in *in, struct err *e) {
    struct g_config m;
    if (g_config_get(in, &m, e) < 0)
        return -1;
    if (take_config(g, m.config, m.resolv, e) < 0)
        log_error("configuration not read, what is known stays error=%s", log_text(e->text));
    return 0;
}

static void warden_on_msg(struct chan *c, struct wire_in *in) {
    struct gate *g = c->arg;
    struct err e;
    int r = in->type == WIRE_G_SERVER   ? take_server(g, in, &e)
            : in->type == WIRE_G_CONFIG ? take_config_again(g, in, &e)
                                        : err_set(&e, EPROTO, "not a message for a gate");
    if (r == 0)
        return;
    log_error("warden sent what it may not message=%s error=%s", wire_type_name(in->type),
              log_text(e.text));
    loop_stop(g->loop);
}

static void warden_on_gone(struct chan *c, const struct err *why) {
    const struct gate *g = c->arg;
    (void)why;
    loop_stop(g->loop);
}

/* What was somebody else's may be ours now. */
static void on_more_own(void *arg) {
    struct gate *g = arg;
    for (struct attachment *a = g->all; a; a = a->next)
        links_judge(a);
}

int gate_open(struct gate *g, struct err *e) {
    int warden = GATE_WARDEN;
    AUTO_FD config = GATE_CONFIG;
    AUTO_FD resolv = GATE_RESOLV;
    g->count_timer = (struct timer){.fn = gate_on_count, .arg = g};
    g->server = (struct chan){.fd = -1, .gone = true};
    g->warden =
        (struct chan){.fd = -1, .on_msg = warden_on_msg, .on_gone = warden_on_gone, .arg = g};
    if (loop_new(&g->loop, e) < 0 || host_new(g->loop, on_more_own, g, &g->host, e) < 0 ||
        resolver_new(g->loop, &g->resolver, e) < 0 || take_config(g, config, resolv, e) < 0)
        return -1;
    loop_share_init(&g->reading, g->loop, READING_NS);
    return chan_init(&g->warden, g->loop, &warden, e);
}
