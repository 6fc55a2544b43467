/* See sandbox.h. Two channels: to the kernel (hostile) and to init. Whatever a kernel sends beyond
 * K_READY goes to the guest that has it; a kernel that talks without one is ended. */

#include "engine/core/sandbox.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/log.h"
#include "engine/core/budget.h"
#include "engine/core/engine.h"
#include "engine/core/state.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#define READY_MS 10000 /* a kernel that is not ready by then never will be */

#define EMPTY_BYTES 40 /* see sandbox_is_empty */

static const uint8_t sandbox_moves[SANDBOX_STATES_] = {
    [SANDBOX_STARTING] = 1 << SANDBOX_READY | 1 << SANDBOX_BUSY | 1 << SANDBOX_ENDING,
    [SANDBOX_READY] = 1 << SANDBOX_BUSY | 1 << SANDBOX_ENDING,
    [SANDBOX_BUSY] = 1 << SANDBOX_ENDING,
};

void sandbox_move(struct sandbox *s, enum sandbox_state to) {
    state_check("sandbox", sandbox_moves, s->state, to);
    s->state = to;
}

uint64_t sandbox_workspace_mtime(const struct sandbox *s) {
    struct stat st;
    if (fstat(s->fds[SANDBOX_WORKSPACE], &st) < 0)
        return 0;
    return (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec;
}

/* Without the workspace's descriptor nobody knows. */
bool sandbox_is_touched(const struct sandbox *s) {
    return s->fds[SANDBOX_WORKSPACE] < 0 || sandbox_workspace_mtime(s) != s->workspace_mtime_ns;
}

/* A directory of tmpfs says that it has 20 bytes for each name, and 40 for itself. */
bool sandbox_is_empty(const struct sandbox *s) {
    struct stat st;
    struct statfs f;
    int fd = s->fds[SANDBOX_WORKSPACE];
    return fstat(fd, &st) == 0 && st.st_size == EMPTY_BYTES && st.st_nlink == 2 &&
           fstatfs(fd, &f) == 0 && f.f_type == TMPFS_MAGIC;
}

bool sandbox_is_full(const struct sandbox *s) {
    struct statfs f;
    return fstatfs(s->fds[SANDBOX_WORKSPACE], &f) == 0 && (f.f_bavail == 0 || f.f_ffree == 0);
}

uint64_t sandbox_disk_bytes(const struct sandbox *s) {
    struct statfs f;
    if (fstatfs(s->fds[SANDBOX_WORKSPACE], &f) < 0)
        return 0;
    return (uint64_t)(f.f_blocks - f.f_bfree) * (uint64_t)f.f_bsize;
}

/* The counter named `key` in a table of /proc/net; 0 if it is not there. snmp has a line of names
 * and a line of values that both begin with "Ip:", snmp6 a line per counter. */
static uint64_t no_route(int fd, bool v6) {
    char text[4096];
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    if (v6) {
        const char *at = strstr(text, "Ip6OutNoRoutes");
        return at ? strtoull(at + strlen("Ip6OutNoRoutes"), NULL, 10) : 0;
    }
    const char *name = text, *values = strchr(text, '\n');
    if (!values)
        return 0;
    for (values++; *name && *name != '\n'; name++) {
        if (strncmp(name, "OutNoRoutes", 11) == 0)
            return strtoull(values, NULL, 10);
        if (*name == ' ')
            values += strcspn(values, " ") + 1;
    }
    return 0;
}

/* Where there is a network the gate tells what it refuses, and libraries look for routes that they
 * do not need, to order the addresses of a name. */
uint64_t sandbox_no_route(const struct sandbox *s) {
    if (!s->net_used || s->network.state != NETWORK_NONE)
        return 0;
    return no_route(s->fds[SANDBOX_SNMP], false) + no_route(s->fds[SANDBOX_SNMP6], true);
}

struct sandbox *sandbox_find(struct engine *g, uint64_t id) {
    for (struct sandbox *s = g->sandboxes; s; s = s->next) {
        if (s->id == id)
            return s;
    }
    return NULL;
}

static void tell_end(const struct sandbox *s) {
    struct wire_out o;
    w_end_put(&o, &(struct w_end){.sandbox = s->id});
    chan_send(&s->engine->warden, &o);
}

void sandbox_break(struct sandbox *s, const char *why) {
    if (s->is_broken || s->state == SANDBOX_ENDING)
        return;
    s->is_broken = true;
    log_warn("sandbox broken id=%llu why=%s", (unsigned long long)s->id, log_text(why));
    if (s->state == SANDBOX_BUSY) {
        tell_end(s); /* not now: its guest may be in the middle of something */
        return;
    }
    if (s->state == SANDBOX_STARTING)
        pool_failed(s->pool, why);
    sandbox_end(s);
}

static void sandbox_on_ctl(struct chan *c, struct wire_in *in) {
    struct sandbox *s = c->arg;
    if (s->is_broken)
        return;
    if (s->state == SANDBOX_STARTING && in->type == WIRE_K_READY) {
        sandbox_move(s, SANDBOX_READY);
        loop_timer_stop(s->engine->loop, &s->deadline);
        s->workspace_mtime_ns = sandbox_workspace_mtime(s);
        pool_ready(s);
        return;
    }
    if (s->state == SANDBOX_BUSY && s->guest) {
        s->guest->kind->frame(s->guest->owner, in);
        return;
    }
    struct k_broken m;
    struct err e;
    if (s->state == SANDBOX_STARTING && in->type == WIRE_K_BROKEN) {
        k_broken_get(in, &m, &e);
        pool_failed(s->pool, m.why);
        sandbox_end(s);
        return;
    }
    sandbox_break(s, "its kernel talks without being asked");
}

/* A busy kernel may have closed its control socket and go on: its guest knows. Any other is
 * useless.
 */
static void sandbox_on_ctl_gone(struct chan *c, const struct err *why) {
    struct sandbox *s = c->arg;
    (void)why;
    if (s->state == SANDBOX_STARTING)
        pool_failed(s->pool, "the kernel died before it was ready");
    if (s->state != SANDBOX_BUSY)
        sandbox_end(s);
    else if (s->guest && s->guest->kind->hung_up)
        s->guest->kind->hung_up(s->guest->owner);
}

static struct question next_question(struct sandbox *s) {
    struct question q = s->asked[s->asked_at];
    s->asked_at = (s->asked_at + 1) % SANDBOX_MAX_ASKED;
    s->nasked--;
    return q;
}

/* Whether init's answers are to questions of an earlier server; its echo is the last of them. */
static bool is_before_echo(struct sandbox *s, struct wire_in *in) {
    struct i_reply_echo m;
    struct err e;
    if (!s->echo || (in->type != WIRE_I_REPLY && in->type != WIRE_I_ERROR))
        return false;
    if (i_reply_echo_get(in, &m, &e) == 0 && m.value == s->echo)
        s->echo = 0;
    return true;
}

static int take_denied(const struct guest *who, struct wire_in *in, struct err *e) {
    struct i_denied m;
    if (i_denied_get(in, &m, e) < 0)
        return -1;
    struct denials *to = who->kind->denied(who->owner, m.process);
    if (to)
        denials_add(to, m.op, m.detail, m.rule);
    return 0;
}

static int take_limit(const struct guest *who, struct wire_in *in, struct err *e) {
    struct i_limit m;
    if (i_limit_get(in, &m, e) < 0)
        return -1;
    who->kind->limit(who->owner, (enum limit_kind)m.kind);
    return 0;
}

static int take_tasks(struct sandbox *s, struct wire_in *in, struct err *e) {
    struct i_tasks m;
    if (i_tasks_get(in, &m, e) < 0)
        return -1;
    s->tasks = m.tasks;
    return 0;
}

static int take_answer(struct sandbox *s, struct wire_in *in, struct err *e) {
    if (s->nasked == 0)
        return err_set(e, EPROTO, "init answers what nobody asked");
    const struct question q = next_question(s);
    if (q.fn)
        q.fn(q.arg, in);
    else
        s->guest->kind->answer(s->guest->owner, q.what, in);
    return 0;
}

static void sandbox_on_req(struct chan *c, struct wire_in *in) {
    struct sandbox *s = c->arg;
    struct err e;
    const struct guest *who = s->guest;
    if (in->type == WIRE_I_NET)
        s->net_used = true;
    if (!who || s->is_broken || in->type == WIRE_I_NET || is_before_echo(s, in))
        return;
    int r = in->type == WIRE_I_DENIED  ? take_denied(who, in, &e)
            : in->type == WIRE_I_LIMIT ? take_limit(who, in, &e)
            : in->type == WIRE_I_TASKS ? take_tasks(s, in, &e)
                                       : take_answer(s, in, &e);
    if (r < 0)
        sandbox_break(s, e.text);
}

/* Init is gone, and with it everything in the sandbox; the warden's word follows. */
static void sandbox_on_req_gone(struct chan *c, const struct err *why) {
    struct sandbox *s = c->arg;
    (void)why;
    if (s->state == SANDBOX_STARTING)
        pool_failed(s->pool, "init died before the kernel was ready");
    if (s->state != SANDBOX_BUSY)
        sandbox_end(s);
    else
        tell_end(s); /* init need not be dead: it may be we who could not go on; W_GONE follows */
}

static void sandbox_on_deadline(struct timer *t) {
    struct sandbox *s = t->arg;
    if (s->state == SANDBOX_STARTING) {
        pool_failed(s->pool, "the kernel was not ready in time");
        sandbox_end(s);
    }
}

static void sandbox_end_later(struct deferred *d) {
    struct sandbox *s = d->arg;
    sandbox_end(s);
    pool_refill(s->pool);
}

static void sandbox_free(struct deferred *d) {
    free(d->arg);
}

static void take_cgroup(struct sandbox *s, const struct wire_fds *knobs, struct wire_in *in) {
    if (knobs->n != KNOBS_)
        return;
    cgroup_fds_done(s->cgroup);
    wire_keep_all(in, knobs->fd, KNOBS_, s->cgroup->fds);
    cgroup_fds_usage(s->cgroup); /* counters of before are not ours */
}

static int check_made(const struct engine *g, const struct w_made *m, struct err *e) {
    if (m->version < WIRE_OLDEST || m->version > WIRE_VERSION)
        return err_set(e, EPROTONOSUPPORT,
                       "its init speaks version %u, this server understands %d to %d", m->version,
                       WIRE_OLDEST, WIRE_VERSION);
    uint32_t there = 0;
    for (unsigned i = 0; i < SANDBOX_FDS_; i++)
        there |= (uint32_t)(m->fds[i] >= 0) << i;
    if (m->profile >= g->config.nprofiles || m->slot >= config_places(&g->config) ||
        (there & SANDBOX_NEEDED) != SANDBOX_NEEDED)
        return err_set(e, EPROTO, "the warden sent one that makes no sense");
    return 0;
}

/* With its descriptors; not on the list of a pool. */
static struct sandbox *make(struct engine *g, const struct w_made *m, struct wire_in *in,
                            struct err *e) {
    if (check_made(g, m, e) < 0)
        return NULL;
    struct sandbox *s = xcalloc(1, sizeof *s);
    s->engine = g;
    s->pool = &g->pools[m->profile];
    s->cgroup = &g->cgroups[m->slot];
    s->id = m->sandbox;
    s->version = (uint16_t)m->version;
    s->end_later = (struct deferred){.fn = sandbox_end_later, .arg = s};
    s->free_later = (struct deferred){.fn = sandbox_free, .arg = s};
    wire_keep_all(in, m->fds, SANDBOX_FDS_, s->fds);
    take_cgroup(s, &m->knobs, in);
    g->no_groups = !cgroup_fds_there(s->cgroup);
    s->ctl = (struct chan){.fd = -1,
                           .on_msg = sandbox_on_ctl,
                           .on_gone = sandbox_on_ctl_gone,
                           .arg = s,
                           .heir = &s->req};
    s->req =
        (struct chan){.fd = -1, .on_msg = sandbox_on_req, .on_gone = sandbox_on_req_gone, .arg = s};
    LIST_PUSH(&g->sandboxes, s, next);
    g->counts.sandboxes++;
    s->deadline = (struct timer){.fn = sandbox_on_deadline, .arg = s};
    for (int i = SANDBOX_STDIN; i <= SANDBOX_STDERR; i++)
        fd_set_nonblock(s->fds[i], e);
    return s;
}

static int open_channels(struct sandbox *s, struct err *e) {
    struct loop *l = s->engine->loop;
    if (chan_init(&s->ctl, l, &s->fds[SANDBOX_CTL], e) < 0 ||
        chan_init(&s->req, l, &s->fds[SANDBOX_REQ], e) < 0)
        return -1;
    s->ctl.version = s->req.version = s->version;
    return 0;
}

void sandbox_refuse(struct engine *g, uint64_t id, const struct err *why) {
    struct wire_out o;
    log_error("sandbox not taken error=%s", log_text(why->text));
    w_lost_put(&o, &(struct w_lost){.sandbox = id});
    chan_send(&g->warden, &o);
}

void sandbox_made(struct engine *g, struct wire_in *in) {
    struct w_made m;
    struct err e;
    struct sandbox *s = w_made_get(in, &m, &e) < 0 ? NULL : make(g, &m, in, &e);
    if (in->cut)
        err_set(&e, EMFILE, NO_DESCRIPTORS);
    if (!s) {
        sandbox_refuse(g, m.sandbox, &e);
        if (m.profile < g->config.nprofiles)
            pool_failed(&g->pools[m.profile], e.text);
        return;
    }
    loop_timer_in_ms(g->loop, &s->deadline, READY_MS);
    if (open_channels(s, &e) < 0) {
        pool_failed(s->pool, e.text);
        sandbox_end(s);
    }
}

struct sandbox *sandbox_adopt(struct engine *g, const struct w_made *m, struct wire_in *in,
                              struct err *e) {
    struct sandbox *s = make(g, m, in, e);
    struct wire_out o;
    if (!s)
        return NULL;
    sandbox_move(s, SANDBOX_BUSY);
    s->net_used = true; /* who knows */
    if (open_channels(s, e) < 0) {
        sandbox_end(s);
        return NULL;
    }
    if (getrandom(&s->echo, sizeof s->echo, 0) != (ssize_t)sizeof s->echo || s->echo == 0)
        s->echo = now_ns();
    i_echo_put(&o, &(struct i_echo){.value = s->echo});
    chan_send(&s->req, &o);
    return s;
}

void sandbox_more(struct engine *g, struct wire_in *in) {
    struct w_kernel_made m;
    struct err e;
    const char *why = w_kernel_made_get(in, &m, &e) < 0 ? e.text : NULL;
    if (in->cut)
        why = NO_DESCRIPTORS;
    struct sandbox *s = sandbox_find(g, m.sandbox);
    if (!s || !s->guest)
        return; /* it has ended meanwhile */
    if (s->guest->kind->more)
        s->guest->kind->more(s->guest->owner, &m, in, why);
    else
        sandbox_break(s, "a process that nobody asked for entered it");
}

void sandbox_no_more(struct engine *g, struct wire_in *in) {
    struct w_kernel_failed m;
    struct err e;
    const struct sandbox *s =
        w_kernel_failed_get(in, &m, &e) < 0 ? NULL : sandbox_find(g, m.sandbox);
    if (s && s->guest && s->guest->kind->no_more)
        s->guest->kind->no_more(s->guest->owner, m.number, m.why);
}

/* Answers are told apart by their order, so a question counts only if it reaches init. */
static bool ask_init(struct sandbox *s, const struct wire_out *o, const struct question *q) {
    if (s->nasked == SANDBOX_MAX_ASKED || s->state == SANDBOX_ENDING ||
        !wire_reaches(o, s->version))
        return false;
    s->asked[(s->asked_at + s->nasked++) % SANDBOX_MAX_ASKED] = *q;
    chan_send(&s->req, o);
    return true;
}

bool sandbox_ask(struct sandbox *s, enum asked what, const struct wire_out *o) {
    return ask_init(s, o, &(struct question){.what = what});
}

bool sandbox_ask_for(struct sandbox *s, const struct wire_out *o,
                     void (*fn)(void *arg, struct wire_in *in), void *arg) {
    return ask_init(s, o, &(struct question){.fn = fn, .arg = arg});
}

static void nobody(void *arg, struct wire_in *in) {
    (void)arg, (void)in;
}

void sandbox_unask(struct sandbox *s, const void *arg) {
    for (unsigned i = 0; i < s->nasked; i++) {
        struct question *q = &s->asked[(s->asked_at + i) % SANDBOX_MAX_ASKED];
        if (q->fn && q->arg == arg)
            q->fn = nobody;
    }
}

void sandbox_end(struct sandbox *s) {
    if (s->state == SANDBOX_ENDING)
        return;
    if (s->state == SANDBOX_READY)
        pool_forget(s);
    sandbox_move(s, SANDBOX_ENDING);
    loop_timer_stop(s->engine->loop, &s->deadline);
    budget_settle(s);
    network_end(s);
    s->guest = NULL;
    tell_end(s);
    /* No descriptor of ours keeps its memory alive. */
    chan_done(&s->ctl);
    chan_done(&s->req);
    fd_close_all(s->fds, SANDBOX_FDS_);
    while (s->nasked) {
        const struct question q = next_question(s);
        if (q.fn)
            q.fn(q.arg, NULL);
    }
}

void sandbox_leave(struct sandbox *s) {
    s->guest = NULL;
    s->is_broken = true;
    loop_defer(s->engine->loop, &s->end_later);
}

void sandbox_gone(struct sandbox *s) {
    struct engine *g = s->engine;
    struct profile_pool *pool = s->pool;
    if (s->guest)
        s->guest->kind->lost(s->guest->owner);
    if (s->state == SANDBOX_STARTING)
        pool_failed(pool, "it died before it was ready");
    sandbox_end(s);
    LIST_REMOVE(&g->sandboxes, s, next);
    g->counts.sandboxes--;
    budget_give(s);
    if (s->on_gone)
        s->on_gone(s->gone_arg);
    loop_defer(g->loop, &s->free_later);
    pool_freed(g);
}
