/* See reports.h. A report about a sandbox that is gone, or whose server is, does nothing; one about
 * a sandbox of another nursery ends the nursery that made it. */

#include "warden/reports.h"

#include "base/buf.h"
#include "base/log.h"
#include "warden/groups.h"
#include "warden/nurseries.h"
#include "warden/say.h"
#include "warden/server.h"
#include "warden/slots.h"
#include "warden/survivors.h"
#include "wire/codec.h"

#include <stdio.h>
#include <string.h>

/* Those that name a sandbox begin with its number. */
union report {
    uint64_t sandbox;
    struct n_made made;
    struct n_failed failed;
    struct n_exited exited;
    struct n_kernel_made kernel_made;
    struct n_kernel_failed kernel_failed;
    struct n_gone gone;
    struct n_born born;
    struct n_state state;
};

/* One report under way; `slot` is NULL when it names no sandbox. */
struct told {
    struct nursery_child *nursery;
    struct slot *slot;
    const union report *m;
    struct wire_in *in;
};

static bool has_needed(const int *fds) {
    for (unsigned i = 0; i < SANDBOX_FDS_; i++) {
        if (fds[i] < 0 && SANDBOX_NEEDED & 1u << i)
            return false;
    }
    return true;
}

static bool report_made(const struct told *t) {
    struct nursery_child *n = t->nursery;
    struct warden *w = n->warden;
    struct slot *s = t->slot;
    if (!has_needed(t->m->made.fds))
        return false;
    if (s->orphan)
        return true;
    if (n->retired) { /* nobody waits for it any more */
        slots_end(s);
        return true;
    }
    struct w_made m = {.sandbox = s->sandbox,
                       .profile = n->profile,
                       .slot = (uint32_t)(s - w->slots),
                       .version = n->chan.version};
    memcpy(m.fds, t->m->made.fds, sizeof m.fds);
    if (!s->known)
        m.knobs = slots_knobs(&s->cgroup);
    struct wire_out o;
    w_made_put(&o, &m);
    chan_send(&w->server_chan, &o);
    s->known = s->settled = s->told = true;
    if (w->config.profiles[n->profile].live)
        survivors_made(s, &t->m->made, t->in);
    return true;
}

static bool report_failed(const struct told *t) {
    nurseries_failed(t->nursery->warden, t->slot, t->m->failed.why);
    return true;
}

static bool report_kernel_made(const struct told *t) {
    struct warden *w = t->nursery->warden;
    const struct n_kernel_made *m = &t->m->kernel_made;
    for (int i = 0; i < KERNEL_OWNER_FDS; i++) {
        if (m->fds[i] < 0)
            return false;
    }
    if (t->slot->orphan || !t->slot->survivor)
        return true;
    struct wire_out o;
    const struct w_kernel_made made = survivors_kernel(t->slot, m->number, m->fds);
    w_kernel_made_put(&o, &made);
    chan_send(&w->server_chan, &o);
    survivors_kernel_made(t->slot, m, t->in);
    return true;
}

static bool report_kernel_failed(const struct told *t) {
    const struct n_kernel_failed *m = &t->m->kernel_failed;
    groups_left(t->nursery->warden, t->slot, m->number);
    if (!t->slot->orphan)
        server_tell_kernel_failed(t->nursery->warden, t->slot->sandbox, m->number, m->why);
    return true;
}

static bool report_exited(const struct told *t) {
    struct warden *w = t->nursery->warden;
    const struct n_exited *m = &t->m->exited;
    if (t->slot->orphan)
        return true;
    struct wire_out o;
    w_exited_put(&o, &(struct w_exited){m->sandbox, m->number, m->status});
    chan_send(&w->server_chan, &o);
    survivors_exited(t->slot, m->number, m->status, !w->server_chan.gone);
    return true;
}

static bool report_gone(const struct told *t) {
    slots_release(t->nursery->warden, t->slot);
    return true;
}

static bool report_born(const struct told *t) {
    t->nursery->pid = (pid_t)t->m->born.pid;
    nurseries_left(t->nursery->warden, t->nursery);
    return true;
}

/* By the name of the profile that it is the live half of. */
static void say_live(struct warden *w, const struct nursery_child *n, const char *how) {
    unsigned twin = config_twin(&w->config, n->profile);
    if (twin < w->config.nprofiles)
        warden_say(w, "live %s %s", w->config.profiles[twin].name, how);
}

static void say_ready(struct nursery_child *n) {
    const struct config_profile *p = &n->warden->config.profiles[n->profile];
    if (!p->live) {
        warden_say(n->warden, "profile %s ready (%s)", p->name, n->what);
        return;
    }
    log_info("live kernels ready profile=%s", p->name);
    say_live(n->warden, n, "ready");
}

static void say_broken(struct nursery_child *n) {
    const struct config_profile *p = &n->warden->config.profiles[n->profile];
    if (!p->live) {
        warden_say(n->warden, "profile %s broken: %s", p->name, n->what);
        return;
    }
    log_warn("no live kernels profile=%s why=%s", p->name, log_text(n->what));
    AUTO_BUF why = BUF_INIT;
    buf_addf(&why, "broken: %s", n->what);
    say_live(n->warden, n, why.data);
}

void reports_state(struct nursery_child *n, const struct n_state *m) {
    struct warden *w = n->warden;
    if (n->retired)
        return;
    enum profile_state before = n->state;
    bool news = before != (enum profile_state)m->state || strcmp(n->what, m->what) != 0;
    n->state = (enum profile_state)m->state;
    snprintf(n->what, sizeof n->what, "%s", m->what);
    snprintf(n->modules, sizeof n->modules, "%s", m->modules);
    if (n->state == PROFILE_READY) {
        n->failures = 0;
        if (before != PROFILE_READY)
            say_ready(n);
    } else if (n->state == PROFILE_RESTARTING) { /* only a zygote's death makes a nursery say so */
        w->zygote_restarts++;
        server_tell_restarts(w);
    } else if (n->state == PROFILE_BROKEN && news) { /* not for each try to start it again */
        say_broken(n);
    }
    server_tell_profile(w, n->profile);
    unsigned twin = config_twin(&w->config, n->profile);
    if (!w->config.profiles[n->profile].live && twin < w->config.nprofiles)
        nurseries_add_live(w, twin);
}

static bool report_state(const struct told *t) {
    reports_state(t->nursery, &t->m->state);
    return true;
}

#define BIRTH (1u << NURSERY_BIRTH)
#define BORN  (1u << NURSERY_BORN)

static const struct {
    enum wire_type type;
    enum wire_payload payload; /* says how many descriptors there are, too */
    unsigned stages;
    bool names_sandbox;
    bool (*fn)(const struct told *);
} reports[] = {
    {WIRE_N_BORN, WIRE_PAYLOAD_n_born, BIRTH, false, report_born},
    {WIRE_N_STATE, WIRE_PAYLOAD_n_state, BIRTH | BORN, false, report_state},
    {WIRE_N_MADE, WIRE_PAYLOAD_n_made, BORN, true, report_made},
    {WIRE_N_FAILED, WIRE_PAYLOAD_n_failed, BORN, true, report_failed},
    {WIRE_N_KERNEL_MADE, WIRE_PAYLOAD_n_kernel_made, BORN, true, report_kernel_made},
    {WIRE_N_KERNEL_FAILED, WIRE_PAYLOAD_n_kernel_failed, BORN, true, report_kernel_failed},
    {WIRE_N_EXITED, WIRE_PAYLOAD_n_exited, BORN, true, report_exited},
    {WIRE_N_GONE, WIRE_PAYLOAD_n_gone, BORN, true, report_gone},
};
#define REPORTS (sizeof reports / sizeof *reports)

bool reports_allows(enum wire_type type, enum nursery_stage stage) {
    for (size_t i = 0; i < REPORTS; i++) {
        if (reports[i].type == type)
            return reports[i].stages & 1u << stage;
    }
    return false;
}

bool reports_serve(struct nursery_child *n, struct wire_in *in) {
    union report m;
    struct err e;
    size_t i = 0;
    while (i < REPORTS && reports[i].type != in->type)
        i++;
    if (i == REPORTS || !(reports[i].stages & (n->pid > 0 ? BORN : BIRTH)) ||
        wire_get(in, wire_layout(reports[i].payload), &m, &e) < 0)
        return false;
    struct told t = {.nursery = n, .m = &m, .in = in};
    if (!reports[i].names_sandbox)
        return reports[i].fn(&t);
    t.slot = slots_find(n->warden, m.sandbox);
    if (!t.slot)
        return true;
    return t.slot->nursery == n && reports[i].fn(&t);
}
