/* The nurseries, one per profile: started, watched, restarted. When one dies, the kernel has
 * already killed all that was in its pid namespace by the time we can reap it. */

#include "warden/warden.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define YOUNG_MS 2000
#define FAIL_MAX 5

static void tell_failed(struct warden *w, struct slot *s, const char *why) {
    struct wire_out o;
    if (s->failed || s->orphan)
        return;
    s->failed = true;
    wire_begin(&o, WIRE_W_FAILED);
    wire_put_u32(&o, s->nursery->profile);
    wire_put_str(&o, why);
    chan_send(&w->server_chan, &o);
}

static void on_made(struct nursery_child *n, struct wire_in *in) {
    struct warden *w = n->warden;
    struct slot *s = slots_find(w, wire_get_u64(in));
    if (!s || s->orphan || s->nursery != n || in->nfds != SANDBOX_FDS_)
        return;
    if (n->retired) { /* nobody waits for it any more */
        slots_end(s);
        return;
    }
    struct wire_out o;
    unsigned knobs = s->known ? 0 : s->cgroup.nknobs;
    wire_begin(&o, WIRE_W_MADE);
    wire_put_u64(&o, s->sandbox);
    wire_put_u32(&o, n->profile);
    wire_put_u32(&o, (uint32_t)(s - w->slots));
    wire_put_u32(&o, knobs);
    for (unsigned i = 0; i < in->nfds; i++)
        wire_put_fd(&o, in->fds[i]);
    for (unsigned i = 0; i < knobs; i++)
        wire_put_fd(&o, s->cgroup.knobs[i]);
    chan_send(&w->server_chan, &o);
    s->known = s->failed = true;
    if (w->config.profiles[n->profile].live)
        kept_made(s, in);
}

static void on_kernel_made(struct nursery_child *n, struct wire_in *in) {
    struct warden *w = n->warden;
    struct slot *s = slots_find(w, wire_get_u64(in));
    uint32_t number = wire_get_u32(in);
    if (in->bad || !s || s->orphan || !s->kept || s->nursery != n || in->nfds != KERNEL_OWNER_FDS)
        return;
    struct wire_out o;
    wire_begin(&o, WIRE_W_KERNEL_MADE);
    wire_put_u64(&o, s->sandbox);
    wire_put_u32(&o, number);
    for (unsigned i = 0; i < in->nfds; i++)
        wire_put_fd(&o, in->fds[i]);
    kept_put_knobs(s, number, &o);
    chan_send(&w->server_chan, &o);
    kept_kernel_made(s, number, in);
}

static void on_kernel_failed(struct nursery_child *n, struct wire_in *in) {
    struct slot *s = slots_find(n->warden, wire_get_u64(in));
    uint32_t number = wire_get_u32(in);
    const char *why = wire_get_str(in, ERR_TEXT_MAX);
    if (in->bad || !s || s->nursery != n)
        return;
    groups_left(n->warden, s, number);
    if (!s->orphan)
        server_tell_kernel_failed(n->warden, s->sandbox, number, why);
}

static void on_exited(struct nursery_child *n, struct wire_in *in) {
    struct warden *w = n->warden;
    struct wire_out o;
    struct slot *s = slots_find(w, wire_get_u64(in));
    uint32_t number = wire_get_u32(in), status = wire_get_u32(in);
    if (in->bad || !s || s->orphan || s->nursery != n)
        return;
    wire_begin(&o, WIRE_W_EXITED);
    wire_put_u64(&o, s->sandbox);
    wire_put_u32(&o, number);
    wire_put_u32(&o, status);
    chan_send(&w->server_chan, &o);
    kept_exited(s, number, status, !w->server_chan.gone);
}

/* By the name of the profile that it is the live half of. */
static void say_live(struct warden *w, const struct nursery_child *n, const char *how) {
    unsigned twin = config_twin(&w->config, n->profile);
    if (twin < w->config.nprofiles)
        warden_say(w, "live %s %s", w->config.profiles[twin].name, how);
}

static void on_state(struct nursery_child *n, struct wire_in *in) {
    struct warden *w = n->warden;
    const char *name = w->config.profiles[n->profile].name;
    uint32_t state = wire_get_u32(in);
    const char *what = wire_get_str(in, sizeof n->what - 1);
    const char *modules = wire_get_str(in, sizeof n->modules - 1);
    struct err e;
    if (wire_end(in, &e) < 0 || state > PROFILE_RESTARTING || n->retired)
        return;
    enum profile_state before = n->state;
    bool news = before != (enum profile_state)state || strcmp(n->what, what) != 0;
    n->state = (enum profile_state)state;
    snprintf(n->what, sizeof n->what, "%s", what);
    snprintf(n->modules, sizeof n->modules, "%s", modules);
    bool live = w->config.profiles[n->profile].live;
    if (n->state == PROFILE_READY) {
        n->failures = 0;
        if (before != PROFILE_READY && live) {
            log_info("live kernels ready profile=%s", name);
            say_live(w, n, "ready");
        } else if (before != PROFILE_READY)
            warden_say(w, "profile %s ready (%s)", name, what);
    } else if (n->state == PROFILE_RESTARTING) { /* only a zygote's death makes a nursery say so */
        w->zygote_restarts++;
        server_tell_restarts(w);
    } else if (n->state == PROFILE_BROKEN && news) { /* not for each try to start it again */
        if (live) {
            log_warn("no live kernels profile=%s why=%s", name, log_text(what));
            AUTO_BUF why = BUF_INIT;
            buf_addf(&why, "broken: %s", what);
            say_live(w, n, why.data);
        } else
            warden_say(w, "profile %s broken: %s", name, what);
    }
    server_tell_profile(w, n->profile);
    unsigned twin = config_twin(&w->config, n->profile);
    if (!live && twin < w->config.nprofiles)
        nurseries_add_live(w, twin);
}

static void on_msg(struct chan *c, struct wire_in *in) {
    struct nursery_child *n = c->arg;
    struct warden *w = n->warden;
    struct slot *s;
    switch ((int)in->type) {
    case WIRE_N_BORN:
        n->pid = (pid_t)wire_get_u32(in);
        nurseries_left(w, n);
        break;
    case WIRE_N_MADE:
        on_made(n, in);
        break;
    case WIRE_N_FAILED:
        s = slots_find(w, wire_get_u64(in));
        if (s)
            tell_failed(w, s, wire_get_str(in, ERR_TEXT_MAX));
        break;
    case WIRE_N_KERNEL_MADE:
        on_kernel_made(n, in);
        break;
    case WIRE_N_KERNEL_FAILED:
        on_kernel_failed(n, in);
        break;
    case WIRE_N_EXITED:
        on_exited(n, in);
        break;
    case WIRE_N_GONE:
        s = slots_find(w, wire_get_u64(in));
        if (s)
            slots_release(w, s);
        break;
    case WIRE_N_STATE:
        on_state(n, in);
        break;
    default:
        log_error("nursery sent message=%s", wire_type_name(in->type));
    }
}

/* It will be reaped; what is left to do is done then. */
static void on_gone(struct chan *c, const struct err *why) {
    struct nursery_child *n = c->arg;
    (void)why;
    if (n->pid > 0)
        kill(n->pid, SIGKILL);
}

static int start(struct nursery_child *n, struct err *e);

static void on_restart(struct timer *t) {
    struct nursery_child *n = t->arg;
    struct err e;
    if (start(n, &e) < 0) {
        log_error("start nursery error=%s", log_text(e.text));
        loop_timer_in_ms(n->warden->loop, t, 1000);
    }
}

/* Which part of the ids is a profile's. */
static unsigned part_of(const struct warden *w, unsigned profile) {
    return w->no_live ? config_named(&w->config, profile) : profile;
}

static int start(struct nursery_child *n, struct err *e) {
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
    n->chan = (struct chan){.fd = -1, .on_msg = on_msg, .on_gone = on_gone, .arg = n};
    int r = spawn(w, &s, &n->birth, e);
    close(pair[1]);
    if (r < 0 || chan_init(&n->chan, w->loop, &pair[0], e) < 0) {
        fd_close(&pair[0]);
        return -1;
    }
    return 0;
}

static void free_now(struct deferred *d) {
    free(d->arg);
}

int nurseries_add(struct warden *w, unsigned profile, struct err *e) {
    struct nursery_child *n = xcalloc(1, sizeof *n);
    n->warden = w;
    n->profile = profile;
    n->chan = (struct chan){.fd = -1, .gone = true};
    n->restart = (struct timer){.fn = on_restart, .arg = n};
    n->free_later = (struct deferred){.fn = free_now, .arg = n};
    n->next = w->all;
    w->all = w->nurseries[profile] = n;
    return start(n, e);
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
static void forget(struct nursery_child *n) {
    struct warden *w = n->warden;
    for (struct nursery_child **p = &w->all; *p; p = &(*p)->next) {
        if (*p == n) {
            *p = n->next;
            break;
        }
    }
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
    for (unsigned i = 0; i < w->config.max_sandboxes; i++)
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
        forget(n);
        return;
    }
    for (unsigned i = 0; i < w->config.max_sandboxes; i++) {
        struct slot *s = &w->slots[i];
        if (s->state != SLOT_USED || s->nursery != n || s->failed)
            continue;
        tell_failed(w, s, "its profile is being replaced");
        slots_end(s);
    }
    nurseries_left(w, n);
}

/* All its sandboxes are dead. */
static void all_gone(struct nursery_child *n) {
    struct warden *w = n->warden;
    for (unsigned i = 0; i < w->config.max_sandboxes; i++) {
        struct slot *s = &w->slots[i];
        if (s->state != SLOT_USED || s->nursery != n)
            continue;
        tell_failed(w, s, "the nursery died");
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
        n->pid = 0;
        if (w->stopping)
            return true;
        if (n->state != PROFILE_BROKEN && !n->retired) /* then it said why */
            log_warn("nursery ended profile=%s status=%d", w->config.profiles[n->profile].name,
                     status);
        chan_done(&n->chan);
        all_gone(n);
        if (n->retired)
            forget(n);
        else
            restart_later(n);
        return true;
    }
    return false;
}
