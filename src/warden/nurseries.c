/* The nurseries, one per profile: started, watched, restarted. When one dies, the kernel has
 * already killed all that was in its pid namespace by the time we can reap it. */

#include "warden/nurseries.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/log.h"
#include "warden/reports.h"
#include "warden/server.h"
#include "warden/slots.h"
#include "warden/spawn.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define YOUNG_MS 2000
#define FAIL_MAX 5

void nurseries_failed(struct warden *w, struct slot *s, const char *why) {
    if (s->settled || s->orphan)
        return;
    s->settled = true;
    server_tell_failed(w, s->nursery->profile, why);
}

static void nursery_kill(const struct nursery_child *n) {
    if (n->pid > 0)
        kill(n->pid, SIGKILL);
    else if (n->birth > 0)
        kill(n->birth, SIGKILL);
}

static void nursery_on_msg(struct chan *c, struct wire_in *in) {
    struct nursery_child *n = c->arg;
    if (reports_serve(n, in))
        return;
    log_error("nursery sent what it may not, ending it profile=%s message=%s",
              n->warden->config.profiles[n->profile].name, wire_type_name(in->type));
    nursery_kill(n);
}

/* It will be reaped; what is left to do is done then. */
static void nursery_on_gone(struct chan *c, const struct err *why) {
    struct nursery_child *n = c->arg;
    if (why->code == EPROTONOSUPPORT) {
        log_error("nursery is of another version, ending it error=%s", log_text(why->text));
        reports_state(n, &(struct n_state){PROFILE_BROKEN, why->text, ""});
    }
    nursery_kill(n);
}

static int nursery_start(struct nursery_child *n, struct err *e);

static void nursery_on_restart(struct timer *t) {
    struct nursery_child *n = t->arg;
    struct err e;
    if (nursery_start(n, &e) < 0) {
        log_error("start nursery error=%s", log_text(e.text));
        loop_timer_in_ms(n->warden->loop, t, 1000);
    }
}

/* Which part of the ids is a profile's. */
static unsigned part_of(const struct warden *w, unsigned profile) {
    return w->no_live ? config_named(&w->config, profile) : profile;
}

static int nursery_start(struct nursery_child *n, struct err *e) {
    struct warden *w = n->warden;
    struct idmap part = idmap_part(&w->ids, part_of(w, n->profile), w->parts);
    part.uid += w->ids_from;
    part.gid += w->ids_from;
    part.count -= w->ids_from;
    char index[12], uid[12], gid[12], count[12], flags[12];
    snprintf(index, sizeof index, "%u", n->profile);
    snprintf(uid, sizeof uid, "%u", part.uid);
    snprintf(gid, sizeof gid, "%u", part.gid);
    snprintf(count, sizeof count, "%u", part.count);
    snprintf(flags, sizeof flags, "%d", (part.single ? 1 : 0) | (part.helper ? 2 : 0));
    int pair[2];
    AUTO_FD config = -1;
    const struct config_part own = {CONFIG_NURSERY, n->profile};
    if (config_pack(&w->config, &own, &config, e) < 0 || wire_pair(pair, e) < 0)
        return -1;
    const char *argv[] = {"cloche-nursery", "birth", index, uid, gid, count, flags, NULL};
    const int fds[] = {pair[1], config};
    const struct spawn s = {.program = argv[0], .argv = argv, .fds = fds, .nfds = 2};
    chan_done(&n->chan);
    n->birth = n->pid = 0;
    n->started_ns = now_ns();
    n->chan =
        (struct chan){.fd = -1, .on_msg = nursery_on_msg, .on_gone = nursery_on_gone, .arg = n};
    int r = spawn(w, &s, &n->birth, e);
    close(pair[1]);
    if (r < 0 || chan_init(&n->chan, w->loop, &pair[0], e) < 0) {
        fd_close(&pair[0]);
        return -1;
    }
    return 0;
}

static void nursery_free(struct deferred *d) {
    free(d->arg);
}

int nurseries_add(struct warden *w, unsigned profile, struct err *e) {
    struct nursery_child *n = xcalloc(1, sizeof *n);
    n->warden = w;
    n->profile = profile;
    n->chan = (struct chan){.fd = -1, .gone = true};
    n->restart = (struct timer){.fn = nursery_on_restart, .arg = n};
    n->free_later = (struct deferred){.fn = nursery_free, .arg = n};
    n->next = w->all;
    w->all = w->nurseries[profile] = n;
    return nursery_start(n, e);
}

void nurseries_add_live(struct warden *w, unsigned profile) {
    unsigned twin = config_twin(&w->config, profile);
    const struct nursery_child *n = twin < w->config.nprofiles ? w->nurseries[twin] : NULL;
    struct err e;
    if (w->nurseries[profile] || w->config.profiles[profile].removed || w->no_live || !n ||
        (n->state != PROFILE_READY && n->state != PROFILE_BROKEN))
        return;
    if (nurseries_add(w, profile, &e) < 0)
        log_error("start nursery profile=%s error=%s", w->config.profiles[profile].name,
                  log_text(e.text));
}

/* It has no process any more, and no sandbox. */
static void nursery_forget(struct nursery_child *n) {
    struct warden *w = n->warden;
    LIST_REMOVE(&w->all, n, next);
    loop_timer_stop(w->loop, &n->restart);
    chan_done(&n->chan);
    loop_defer(w->loop, &n->free_later);
}

void nurseries_free(struct warden *w) {
    for (struct nursery_child *n = w->all, *next; n; n = next) {
        next = n->next;
        free(n);
    }
    w->all = NULL;
}

static bool has_sandbox(const struct warden *w, const struct nursery_child *n) {
    for (unsigned i = 0; i < w->nslots; i++)
        if (w->slots[i].state == SLOT_USED && w->slots[i].nursery == n)
            return true;
    return false;
}

void nurseries_left(struct warden *w, struct nursery_child *n) {
    if (n->retired && n->pid > 0 && !has_sandbox(w, n))
        kill(n->pid, SIGKILL); /* one that is being born is ended when it says who it is */
}

void nurseries_retire(struct warden *w, struct nursery_child *n) {
    n->retired = true;
    if (n->pid == 0 && n->birth == 0) { /* it waited to be started again, or was given up */
        nursery_forget(n);
        return;
    }
    for (unsigned i = 0; i < w->nslots; i++) {
        struct slot *s = &w->slots[i];
        if (s->state != SLOT_USED || s->nursery != n || s->settled)
            continue;
        nurseries_failed(w, s, "its profile is being replaced");
        slots_end(s);
    }
    nurseries_left(w, n);
}

/* All its sandboxes are dead. */
static void all_gone(struct nursery_child *n) {
    struct warden *w = n->warden;
    for (unsigned i = 0; i < w->nslots; i++) {
        struct slot *s = &w->slots[i];
        if (s->state != SLOT_USED || s->nursery != n)
            continue;
        nurseries_failed(w, s, "the nursery died");
        slots_release(w, s);
    }
}

static void restart_later(struct nursery_child *n) {
    struct warden *w = n->warden;
    bool young = now_ns() - n->started_ns < ms_to_ns(YOUNG_MS);
    n->failures = young ? n->failures + 1 : 0;
    if (n->state == PROFILE_BROKEN && young && n->failures > FAIL_MAX)
        return; /* it said why; starting it again and again would not help */
    if (n->state != PROFILE_BROKEN) {
        n->state = PROFILE_RESTARTING;
        server_tell_profile(w, n->profile);
    }
    w->nursery_restarts++;
    server_tell_restarts(w);
    loop_timer_in_ms(w->loop, &n->restart,
                     n->failures ? 50u << (n->failures > 6 ? 6 : n->failures) : 0);
}

bool nurseries_reaped(struct warden *w, pid_t pid, int status) {
    for (struct nursery_child *n = w->all; n; n = n->next) {
        bool birth = n->birth == pid, proper = n->pid == pid;
        if (!birth && !proper)
            continue;
        chan_pump(&n->chan); /* N_BORN, or why there is none */
        if (birth) {
            n->birth = 0;
            if (n->pid > 0)
                return true;
        }
        n->birth = n->pid = 0; /* a birth that ends after its nursery is no second death */
        if (w->stopping)
            return true;
        if (n->state != PROFILE_BROKEN && !n->retired) /* then it said why */
            log_warn("nursery ended profile=%s status=%d", w->config.profiles[n->profile].name,
                     status);
        chan_done(&n->chan);
        all_gone(n);
        if (n->retired)
            nursery_forget(n);
        else
            restart_later(n);
        return true;
    }
    return false;
}
