/* The server as seen by the warden: unprivileged, and trusted with nothing but the requests below.
 * It can die at any time; the listening socket is ours, so clients wait in its backlog meanwhile.
 */

#include "warden/warden.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LAST_WORDS 64 /* turns of reading what a server left in its socket */

/* Of a profile that has no nursery. */
static enum profile_state without_nursery(const struct warden *w, unsigned profile,
                                          const char **ret_why) {
    const struct config_profile *p = &w->config.profiles[profile];
    if (p->live && !p->removed && !w->no_live) {
        *ret_why = "its turn to start has not come";
        return PROFILE_STARTING;
    }
    *ret_why = p->removed ? "it was removed from the configuration"
               : w->no_live
                   ? "there are too few user ids; give more in /etc/subuid and /etc/subgid "
                     "(65536 is usual) and restart"
                   : "it could not be started";
    return PROFILE_BROKEN;
}

static void fail(struct warden *w, uint32_t profile, const char *why) {
    struct wire_out o;
    wire_begin(&o, WIRE_W_FAILED);
    wire_put_u32(&o, profile);
    wire_put_str(&o, why);
    chan_send(&w->server_chan, &o);
}

static bool do_make(struct warden *w, struct wire_in *in) {
    struct err e;
    uint32_t profile = wire_get_u32(in);
    if (wire_end(in, &e) < 0 || profile >= w->config.nprofiles)
        return false;
    struct nursery_child *n = w->nurseries[profile];
    if (!n || n->chan.gone || n->state == PROFILE_BROKEN) {
        const char *why = "the nursery is restarting";
        if (!n)
            without_nursery(w, profile, &why);
        else if (n->state == PROFILE_BROKEN)
            why = n->what;
        fail(w, profile, why);
        return true;
    }
    struct slot *s = slots_take(w, n, &e);
    if (!s) {
        fail(w, profile, e.text);
        return true;
    }
    struct wire_out o;
    wire_begin(&o, WIRE_N_MAKE);
    wire_put_u64(&o, s->sandbox);
    wire_put_u32(&o, (uint32_t)(s - w->slots));
    for (unsigned i = 0; i < s->cgroup.nprocs; i++)
        wire_put_fd(&o, s->cgroup.procs[i]);
    chan_send(&n->chan, &o);
    return true;
}

static bool do_end(struct warden *w, struct wire_in *in) {
    struct err e;
    uint64_t id = wire_get_u64(in);
    if (wire_end(in, &e) < 0)
        return false;
    struct slot *s = slots_find(w, id);
    if (!s) /* it may just have ended by itself */
        return true;
    if (in->type == WIRE_W_LOST)
        s->known = false;
    kept_free(s); /* no next server gets it; and what a program left in it is not ours to close */
    slots_end(s);
    return true;
}

void server_tell_kernel_failed(struct warden *w, uint64_t sandbox, uint32_t number,
                               const char *why) {
    struct wire_out o;
    wire_begin(&o, WIRE_W_KERNEL_FAILED);
    wire_put_u64(&o, sandbox);
    wire_put_u32(&o, number);
    wire_put_str(&o, why);
    chan_send(&w->server_chan, &o);
}

static bool do_kernel(struct warden *w, struct wire_in *in) {
    struct err e;
    uint64_t id = wire_get_u64(in);
    uint32_t number = wire_get_u32(in);
    struct cgroup_limits l = {.memory_bytes = wire_get_u64(in)};
    l.pids = wire_get_u32(in);
    l.cpus_percent = wire_get_u32(in);
    if (wire_end(in, &e) < 0)
        return false;
    struct slot *s = slots_find(w, id);
    if (!s || s->orphan)
        return true; /* it has just ended, and that is told */
    if (!s->kept) {
        server_tell_kernel_failed(w, id, number, "it is no live sandbox");
        return true;
    }
    const struct cgroup_slot *group = &s->cgroup;
    if (l.memory_bytes)
        group = groups_make(w, s, number, &l, &e);
    if (!group) {
        server_tell_kernel_failed(w, id, number, e.text);
        return true;
    }
    struct wire_out o;
    wire_begin(&o, WIRE_N_KERNEL);
    wire_put_u64(&o, id);
    wire_put_u32(&o, number);
    for (unsigned i = 0; i < group->nprocs; i++)
        wire_put_fd(&o, group->procs[i]);
    chan_send(&s->nursery->chan, &o);
    return true;
}

static bool do_left(struct warden *w, struct wire_in *in) {
    struct err e;
    uint64_t id = wire_get_u64(in);
    uint32_t number = wire_get_u32(in);
    if (wire_end(in, &e) < 0)
        return false;
    struct slot *s = slots_find(w, id);
    if (s && !s->orphan)
        groups_left(w, s, number);
    return true;
}

static bool do_shut(struct warden *w, struct wire_in *in) {
    struct err e;
    uint64_t id = wire_get_u64(in);
    uint32_t number = wire_get_u32(in);
    if (wire_end(in, &e) < 0)
        return false;
    struct slot *s = slots_find(w, id);
    if (s && !s->orphan)
        kept_shut(s, number);
    return true;
}

static bool do_keep(struct warden *w, struct wire_in *in) {
    struct err e;
    uint64_t id = wire_get_u64(in);
    AUTO_FD journal = wire_take_fd(in);
    if (wire_end(in, &e) < 0)
        return false;
    struct slot *s = slots_find(w, id);
    if (!s || s->orphan)
        return true;
    return s->kept && kept_keep(s, &journal, &e) == 0;
}

/* All that a server may ask for. */
static const struct {
    enum wire_type type;
    unsigned nfds;
    bool (*fn)(struct warden *, struct wire_in *);
} requests[] = {
    {WIRE_W_MAKE, 0, do_make}, {WIRE_W_END, 0, do_end},   {WIRE_W_KERNEL, 0, do_kernel},
    {WIRE_W_SHUT, 0, do_shut}, {WIRE_W_KEEP, 1, do_keep}, {WIRE_W_LEFT, 0, do_left},
    {WIRE_W_LOST, 0, do_end},
};

static void on_msg(struct chan *c, struct wire_in *in) {
    struct warden *w = c->arg;
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        if (requests[i].type == in->type && in->nfds == requests[i].nfds && requests[i].fn(w, in))
            return;
    }
    log_error("server sent what it may not, ending it message=%s", wire_type_name(in->type));
    kill(w->server, SIGKILL);
}

static void on_gone(struct chan *c, const struct err *why) {
    struct warden *w = c->arg;
    (void)why;
    if (w->server > 0)
        kill(w->server, SIGKILL);
}

void server_tell_profile(struct warden *w, unsigned profile) {
    const struct nursery_child *n = w->nurseries[profile];
    const char *what = n ? n->what : NULL;
    enum profile_state state = n ? n->state : without_nursery(w, profile, &what);
    struct wire_out o;
    wire_begin(&o, WIRE_W_PROFILE);
    wire_put_u32(&o, profile);
    wire_put_u32(&o, state);
    wire_put_str(&o, what);
    wire_put_str(&o, n ? n->modules : "");
    chan_send(&w->server_chan, &o);
}

void server_tell_restarts(struct warden *w) {
    struct wire_out o;
    wire_begin(&o, WIRE_W_RESTARTS);
    wire_put_u32(&o, w->server_restarts);
    wire_put_u32(&o, w->nursery_restarts);
    wire_put_u32(&o, w->zygote_restarts);
    chan_send(&w->server_chan, &o);
}

static void tell_layers(struct warden *w) {
    struct wire_out o;
    wire_begin(&o, WIRE_W_LAYERS);
    wire_put_u32(&o, PROBE_LAYERS_);
    for (unsigned i = 0; i < PROBE_LAYERS_; i++) {
        wire_put_str(&o, probe_layer_name((enum probe_layer)i));
        wire_put_u32(&o, w->probe.layers[i].state);
        wire_put_str(&o, w->probe.layers[i].how);
    }
    chan_send(&w->server_chan, &o);
}

int server_start(struct warden *w, struct err *e) {
    int pair[2];
    if (wire_pair(pair, e) < 0)
        return -1;
    const char *argv[] = {"cloche-server", NULL};
    int fds[SPAWN_MAX_FDS] = {w->all_fd, w->listen_fd, pair[1]};
    for (unsigned i = 0; i < config_http_fds(&w->config); i++)
        fds[3 + i] = HTTP_FDS + (int)i;
    const struct spawn s = {.program = argv[0],
                            .argv = argv,
                            .fds = fds,
                            .nfds = 3 + config_http_fds(&w->config),
                            .unprivileged = true};
    chan_done(&w->server_chan);
    w->server_chan = (struct chan){.fd = -1, .on_msg = on_msg, .on_gone = on_gone, .arg = w};
    w->server_started_ns = now_ns();
    int r = spawn(w, &s, &w->server, e);
    close(pair[1]);
    if (r < 0 || chan_init(&w->server_chan, w->loop, &pair[0], e) < 0) {
        fd_close(&pair[0]);
        return -1;
    }
    for (unsigned i = 0; i < w->config.nprofiles; i++)
        server_tell_profile(w, i);
    tell_layers(w);
    kept_give(w);
    server_tell_restarts(w); /* says to the server that these were all */
    return 0;
}

/* What it had is nobody's now, but for what it kept: that is the next one's. */
void server_reaped(struct warden *w, int status) {
    w->server = 0;
    for (int i = 0; i < LAST_WORDS && !w->stopping; i++)
        chan_pump(&w->server_chan); /* until it is gone: what it kept before it died counts */
    chan_done(&w->server_chan);
    if (w->stopping)
        return;
    if (w->draining) {
        loop_stop(w->loop);
        return;
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) >= 126) { /* spawn.c: it was never there */
        warden_say(w, "problem %s/cloche-server cannot be started: see that it may be executed",
                   w->config.libexec);
        w->cannot = true;
        loop_stop(w->loop);
        return;
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 3) {
        warden_say(w, "problem the server cannot start; its log says why");
        w->cannot = true;
        loop_stop(w->loop);
        return;
    }
    log_error("server ended status=%d", status);
    w->server_restarts++;
    for (unsigned i = 0; i < w->config.max_sandboxes; i++) {
        w->slots[i].known = false;
        if (w->slots[i].state != SLOT_USED || kept_outlives(&w->slots[i]))
            continue;
        w->slots[i].orphan = true;
        slots_end(&w->slots[i]);
    }
    bool young = now_ns() - w->server_started_ns < ms_to_ns(1000);
    loop_timer_in_ms(w->loop, &w->server_restart, young ? 200 : 0);
}
