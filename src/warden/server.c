/* The server as seen by the warden: unprivileged, and trusted with nothing but the requests of
 * requests.c. It can die at any time; the listening socket is ours, so clients wait in its backlog
 * meanwhile.
 */

#include "warden/server.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "warden/gate.h"
#include "warden/requests.h"
#include "warden/say.h"
#include "warden/slots.h"
#include "warden/spawn.h"
#include "warden/survivors.h"
#include "wire/codec.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LAST_WORDS 64 /* turns of reading what a server left in its socket */

enum profile_state server_without_nursery(const struct warden *w, unsigned profile,
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

void server_tell_failed(struct warden *w, uint32_t profile, const char *why) {
    struct wire_out o;
    w_failed_put(&o, &(struct w_failed){.profile = profile, .why = why});
    chan_send(&w->server_chan, &o);
}

void server_tell_kernel_failed(struct warden *w, uint64_t sandbox, uint32_t number,
                               const char *why) {
    struct wire_out o;
    w_kernel_failed_put(
        &o, &(struct w_kernel_failed){.sandbox = sandbox, .number = number, .why = why});
    chan_send(&w->server_chan, &o);
}

static void server_on_msg(struct chan *c, struct wire_in *in) {
    struct warden *w = c->arg;
    if (requests_serve(w, in))
        return;
    log_error("server sent what it may not, ending it message=%s", wire_type_name(in->type));
    kill(w->server, SIGKILL);
}

static void server_on_gone(struct chan *c, const struct err *why) {
    struct warden *w = c->arg;
    if (why->code == EPROTONOSUPPORT)
        log_error("server is of another version, ending it error=%s", log_text(why->text));
    if (w->server > 0)
        kill(w->server, SIGKILL);
}

void server_tell_profile(struct warden *w, unsigned profile) {
    const struct nursery_child *n = w->nurseries[profile];
    const char *what = n ? n->what : NULL;
    enum profile_state state = n ? n->state : server_without_nursery(w, profile, &what);
    struct wire_out o;
    w_profile_put(
        &o, &(struct w_profile){
                .profile = profile, .state = state, .what = what, .modules = n ? n->modules : ""});
    chan_send(&w->server_chan, &o);
}

void server_tell_restarts(struct warden *w) {
    struct wire_out o;
    w_restarts_put(&o, &(struct w_restarts){.server = w->server_restarts,
                                            .nurseries = w->nursery_restarts,
                                            .zygotes = w->zygote_restarts,
                                            .gate = w->gate_restarts});
    chan_send(&w->server_chan, &o);
}

static void tell_layers(struct warden *w) {
    struct wire_out o;
    for (unsigned i = 0; i < PROBE_LAYERS_; i++) {
        w_layer_put(&o, &(struct w_layer){probe_layer_name((enum probe_layer)i),
                                          w->probe.layers[i].state, w->probe.layers[i].how});
        chan_send(&w->server_chan, &o);
    }
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
    w->server_chan =
        (struct chan){.fd = -1, .on_msg = server_on_msg, .on_gone = server_on_gone, .arg = w};
    w->server_started_ns = now_ns();
    int r = spawn(w, &s, &w->server, e);
    close(pair[1]);
    if (r < 0 || chan_init(&w->server_chan, w->loop, &pair[0], e) < 0) {
        fd_close(&pair[0]);
        return -1;
    }
    w->stranded_told = 0;
    slots_weigh_stranded(&w->stranded_timer);
    for (unsigned i = 0; i < w->config.nprofiles; i++)
        server_tell_profile(w, i);
    tell_layers(w);
    gate_meet(w); /* before the sandboxes that need it */
    survivors_give(w);
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
    for (unsigned i = 0; i < w->nslots; i++) {
        w->slots[i].known = false;
        if (w->slots[i].state != SLOT_USED || survivors_outlives(&w->slots[i]))
            continue;
        w->slots[i].orphan = true;
        slots_end(&w->slots[i]);
    }
    bool young = now_ns() - w->server_started_ns < ms_to_ns(1000);
    loop_timer_in_ms(w->loop, &w->server_restart, young ? 200 : 0);
}
