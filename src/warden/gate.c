/* See gate.h. The gate has no privilege and no part of what a sandbox holds: it gets a channel to
 * us, its part of the configuration, and the host's list of resolvers, since it may open no file.
 * What it is told afterwards comes over the channel; it never says anything there.
 *
 * Its end is no fault of the sandboxes: what they have open goes on, the server attaches them again
 * to the next one. One that dies young is started later and later. */

#include "warden/gate.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "warden/server.h"
#include "warden/spawn.h"
#include "wire/codec.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#define RESOLV    "/etc/resolv.conf"
#define YOUNG_MS  2000
#define FIRST_MS  50
#define FAIL_MOST 8 /* the longest wait is FIRST_MS doubled so often: about 13 seconds */

static void gate_kill(const struct warden *w) {
    if (w->gate.pid > 0)
        kill(w->gate.pid, SIGKILL);
}

static void gate_on_msg(struct chan *c, struct wire_in *in) {
    const struct warden *w = c->arg;
    log_error("gate sent what it may not, ending it message=%s", wire_type_name(in->type));
    gate_kill(w);
}

static void gate_on_gone(struct chan *c, const struct err *why) {
    const struct warden *w = c->arg;
    (void)why;
    gate_kill(w);
}

/* SECURITY: opened here because the gate may open nothing; it is a list of addresses for
 * everybody, whatever is in it. */
static int open_resolv(void) {
    int fd = open(RESOLV, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    return fd >= 0 ? fd : open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static int gate_spawn(struct warden *w, struct err *e) {
    struct gate_child *g = &w->gate;
    const struct config_part own = {.reader = CONFIG_GATE};
    int pair[2];
    AUTO_FD config = -1;
    AUTO_FD resolv = open_resolv();
    if (config_pack(&w->config, &own, &config, e) < 0 || wire_pair(pair, e) < 0)
        return -1;
    AUTO_FD ours = pair[0];
    AUTO_FD its = pair[1];
    const char *argv[] = {"cloche-gate", NULL};
    const int fds[] = {its, config, resolv};
    const struct spawn s = {
        .program = argv[0], .argv = argv, .fds = fds, .nfds = 3, .unprivileged = true};
    chan_done(&g->chan);
    g->chan = (struct chan){.fd = -1, .on_msg = gate_on_msg, .on_gone = gate_on_gone, .arg = w};
    g->started_ns = now_ns();
    if (spawn(w, &s, &g->pid, e) < 0)
        return -1;
    return chan_init(&g->chan, w->loop, &ours, e);
}

static void start_later(struct warden *w) {
    struct gate_child *g = &w->gate;
    bool young = now_ns() - g->started_ns < ms_to_ns(YOUNG_MS);
    g->failures = young ? g->failures + (g->failures < FAIL_MOST) : 0;
    loop_timer_in_ms(w->loop, &g->restart, young ? (uint64_t)FIRST_MS << (g->failures - 1) : 0);
}

static void gate_on_restart(struct timer *t) {
    gate_start(t->arg);
}

void gate_init(struct warden *w) {
    w->gate = (struct gate_child){.chan = {.fd = -1, .gone = true},
                                  .restart = {.fn = gate_on_restart, .arg = w}};
}

void gate_start(struct warden *w) {
    struct err e;
    if (w->stopping)
        return;
    if (gate_spawn(w, &e) < 0) {
        log_error("start gate error=%s", log_text(e.text));
        if (w->gate.pid > 0)
            gate_kill(w); /* it is reaped, and started again then */
        else
            start_later(w);
        return;
    }
    gate_meet(w);
}

static void tell_server(struct warden *w, int fd) {
    struct wire_out o;
    w_gate_put(&o, &(struct w_gate){.gate = fd});
    chan_send(&w->server_chan, &o);
}

void gate_meet(struct warden *w) {
    int pair[2];
    struct err e;
    struct wire_out o;
    if (w->gate.chan.gone || w->server_chan.gone)
        return;
    if (wire_pair(pair, &e) < 0) {
        log_error("gate and server cannot meet error=%s", log_text(e.text));
        gate_kill(w); /* the next one tries again */
        return;
    }
    g_server_put(&o, &(struct g_server){.server = pair[0]});
    chan_send(&w->gate.chan, &o);
    tell_server(w, pair[1]);
    fd_close_all(pair, 2);
}

void gate_tell_config(struct warden *w) {
    const struct config_part own = {.reader = CONFIG_GATE};
    struct err e;
    struct wire_out o;
    AUTO_FD config = -1;
    AUTO_FD resolv = open_resolv();
    if (config_pack(&w->config, &own, &config, &e) < 0) {
        log_error("configuration for the gate error=%s", log_text(e.text));
        return;
    }
    g_config_put(&o, &(struct g_config){.config = config, .resolv = resolv});
    chan_send(&w->gate.chan, &o);
}

void gate_reaped(struct warden *w, int status) {
    w->gate.pid = 0;
    chan_done(&w->gate.chan);
    if (w->stopping)
        return;
    log_error("gate ended status=%d", status);
    w->gate_restarts++;
    tell_server(w, -1);
    server_tell_restarts(w);
    start_later(w);
}

void gate_end(struct warden *w) {
    gate_kill(w);
    chan_done(&w->gate.chan);
}
