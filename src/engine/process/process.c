/* A process in a live sandbox: a kernel or a command, from the question to the warden to its end.
 * The first one comes with the sandbox; the others are forked into it by the profile's zygote, the
 * same way. */

#include "engine/process/process.h"

#include "base/fd.h"
#include "base/list.h"
#include "engine/core/sandbox.h"
#include "engine/core/state.h"
#include "engine/process/group.h"
#include "engine/process/live_state.h"
#include "loop/crew.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define READY_MS   10000
#define LAST_WORDS 32 /* others may have its socket, and go on */

static const uint8_t process_moves[PROCESS_STATES_] = {
    [PROCESS_NONE] = 1 << PROCESS_ASKED | 1 << PROCESS_EXPECTED | 1 << PROCESS_READY,
    [PROCESS_ASKED] = 1 << PROCESS_STARTING | 1 << PROCESS_NONE,
    [PROCESS_EXPECTED] = 1 << PROCESS_STARTING | 1 << PROCESS_READY | 1 << PROCESS_NONE,
    [PROCESS_STARTING] = 1 << PROCESS_READY | 1 << PROCESS_NONE,
    [PROCESS_READY] = 1 << PROCESS_NONE,
};

static void process_move(struct process *p, enum process_state to) {
    state_check("process", process_moves, p->state, to);
    p->state = to;
}

static void process_link(struct process *p, struct live *l) {
    p->live = l;
    LIST_PUSH(&l->processes, p, next);
}

static struct process *process_find(struct live *l, uint32_t number) {
    struct process *p = l->processes;
    while (p && p->number != number)
        p = p->next;
    return p;
}

/* Nothing of it is left but the struct. */
void process_done(struct process *p) {
    if (p->state == PROCESS_NONE)
        return;
    LIST_REMOVE(&p->live->processes, p, next);
    loop_timer_stop(p->live->engine->loop, &p->deadline);
    loop_share_leave(&p->ending);
    /* Before they are closed: the warden's copies would keep the loop's interest in them alive. */
    if (p->kind->on_dying && p->fds[1] >= 0)
        p->kind->on_dying(p->owner);
    if (p->ctl == &p->own)
        chan_done(&p->own);
    p->ctl = NULL;
    fd_close_all(p->fds, 3);
    group_leave(p);
    process_move(p, PROCESS_NONE);
}

static void process_end(struct process *p, int status, const char *why) {
    process_done(p);
    p->kind->on_end(p->owner, status, why);
}

static void process_said(struct process *p, struct wire_in *in) {
    p->last_words -= p->last_words > 0;
    if (p->state == PROCESS_READY) {
        p->kind->on_frame(p->owner, in);
    } else if (in->type == WIRE_K_READY) {
        process_move(p, PROCESS_READY);
        loop_timer_stop(p->live->engine->loop, &p->deadline);
        if (p->doomed)
            process_kill(p);
        else
            p->kind->on_ready(p->owner);
    } else if (in->type == WIRE_K_BROKEN) {
        struct k_broken m;
        struct err e;
        k_broken_get(in, &m, &e);
        snprintf(p->why, sizeof p->why, "%s", m.why);
    }
}

static void process_on_msg(struct chan *c, struct wire_in *in) {
    process_said(c->arg, in);
}

static void process_hung_up(struct process *p) {
    if (p->state == PROCESS_READY && p->kind->on_hung_up)
        p->kind->on_hung_up(p->owner);
}

static void process_on_gone(struct chan *c, const struct err *why) {
    (void)why;
    process_hung_up(c->arg);
}

static void process_on_deadline(struct timer *t) {
    struct process *p = t->arg;
    if (p->doomed) { /* its end was told to an earlier server, or never will be */
        process_end(p, SIGKILL, p->why[0] ? p->why : NULL);
        return;
    }
    snprintf(p->why, sizeof p->why, "it was not ready in time");
    process_kill(p);
}

static void process_set_up(struct process *p, struct live *l) {
    cgroup_fds_init(&p->cgroup);
    p->fds[0] = p->fds[1] = p->fds[2] = -1;
    p->ctl = &p->own;
    p->own = (struct chan){.fd = -1,
                           .gone = true,
                           .on_msg = process_on_msg,
                           .on_gone = process_on_gone,
                           .arg = p,
                           .heir = &l->sandbox->req,
                           .share = &l->shared->hearing};
    p->deadline = (struct timer){.fn = process_on_deadline, .arg = p};
}

void process_start(struct process *p, struct live *l) {
    struct wire_out o;
    process_move(p, PROCESS_ASKED);
    p->doomed = p->was_own = p->has_exited = false;
    p->heard_ns = 0;
    p->why[0] = '\0';
    p->number = ++l->last_number;
    process_set_up(p, l);
    loop_timer_in_ms(l->engine->loop, &p->deadline, READY_MS);
    process_link(p, l);
    const struct w_kernel m = {.sandbox = l->sandbox->id,
                               .number = p->number,
                               .memory_bytes =
                                   p->limits.memory_mb ? config_group_bytes(&p->limits) : 0,
                               .pids = p->limits.pids,
                               .cpus_percent = p->limits.cpus_percent};
    w_kernel_put(&o, &m);
    chan_send(&l->engine->warden, &o);
}

static void process_resume(struct process *p) {
    process_move(p, PROCESS_READY);
    if (p->doomed)
        process_kill(p);
    else
        p->kind->on_resumed(p->owner);
}

void process_expect(struct process *p, struct live *l, int64_t number) {
    p->number = number < 0 ? UINT32_MAX : (uint32_t)number;
    process_move(p, PROCESS_EXPECTED);
    process_set_up(p, l);
    process_link(p, l);
}

void processes_first_here(struct live *l) {
    struct process *p = process_find(l, 0);
    if (!p || p->state != PROCESS_EXPECTED)
        return;
    p->ctl = &l->sandbox->ctl;
    chan_set_share(p->ctl, &l->shared->hearing, crew_owner(l->req.tenant));
    for (int i = 0; i < 3; i++)
        p->fds[i] = fd_take(&l->sandbox->fds[SANDBOX_STDIN + i]);
    process_resume(p);
}

void processes_all_here(struct live *l) {
    for (;;) {
        struct process *p = l->processes;
        while (p && p->state != PROCESS_EXPECTED)
            p = p->next;
        if (!p)
            return;
        process_end(p, 0, "it ended while the server was away");
    }
}

void process_take_first(struct process *p, struct live *l) {
    struct sandbox *s = l->sandbox;
    process_move(p, PROCESS_READY);
    p->number = 0;
    cgroup_fds_init(&p->cgroup);
    p->ctl = &s->ctl;
    chan_set_share(p->ctl, &l->shared->hearing, crew_owner(l->req.tenant));
    p->deadline = (struct timer){.fn = process_on_deadline, .arg = p};
    for (int i = 0; i < 3; i++)
        p->fds[i] = fd_take(&s->fds[SANDBOX_STDIN + i]);
    process_link(p, l);
}

/* ---- strangers: an earlier server asked for them and did not live to write that down ---- */

struct stranger {
    struct process process;
    struct deferred free_later;
};

static void free_stranger(struct deferred *d) {
    free(d->arg);
}

static void on_stranger(void *owner) {
    (void)owner;
}

static void on_stranger_frame(void *owner, struct wire_in *in) {
    (void)owner, (void)in;
}

static void on_stranger_end(void *owner, int status, const char *why) {
    struct stranger *s = owner;
    (void)status, (void)why;
    loop_defer(s->process.live->engine->loop, &s->free_later);
}

/* One that is not known to init yet is killed when it says that it is ready. */
static struct process *stranger_new(struct live *l, uint32_t number) {
    static const struct process_kind kind = {.on_ready = on_stranger,
                                             .on_resumed = on_stranger,
                                             .on_frame = on_stranger_frame,
                                             .on_end = on_stranger_end};
    struct stranger *s = xcalloc(1, sizeof *s);
    s->process = (struct process){.kind = &kind, .owner = s};
    s->free_later = (struct deferred){.fn = free_stranger, .arg = s};
    s->process.number = number;
    process_move(&s->process, PROCESS_ASKED);
    process_set_up(&s->process, l);
    process_link(&s->process, l);
    process_kill(&s->process);
    return &s->process;
}

void processes_ended_with(struct live *l) {
    while (l->processes) {
        struct process *p = l->processes;
        process_end(p, p->has_exited ? p->status : SIGKILL, NULL);
    }
}

/* ---- from the warden ---- */

void processes_made(struct live *l, const struct w_kernel_made *m, struct wire_in *in,
                    const char *why) {
    struct process *p = process_find(l, m->number);
    struct err e;
    if (p ? p->state != PROCESS_ASKED && p->state != PROCESS_EXPECTED
          : m->number > l->last_number) {
        sandbox_break(l->sandbox, "a process that nobody asked for entered it");
        return;
    }
    if (!p)
        p = stranger_new(l, m->number);
    bool expected = p->state == PROCESS_EXPECTED;
    AUTO_FD ctl = wire_keep(in, m->fds[0]);
    wire_keep_all(in, m->fds + 1, 3, p->fds);
    for (int i = 0; i < 3; i++)
        fd_set_nonblock(p->fds[i], &e);
    if (m->knobs.n == KNOBS_)
        wire_keep_all(in, m->knobs.fd, KNOBS_, p->cgroup.fds);
    p->own.gone = false;
    process_move(p, PROCESS_STARTING);
    if (!why && chan_init(&p->own, l->engine->loop, &ctl, &e) < 0)
        why = e.text;
    p->own.version = l->sandbox->version;
    if (why) {
        snprintf(p->why, sizeof p->why, "%.190s", why);
        process_kill(p);
    } else if (expected) {
        process_resume(p);
    } else if (p->doomed) {
        process_signal(p, SIGKILL, SIGNAL_TREE);
    }
}

struct denials *processes_denied(struct live *l, uint32_t number) {
    const struct process *p = process_find(l, number);
    return p && p->kind->denied ? p->kind->denied(p->owner) : NULL;
}

void processes_failed(struct live *l, uint32_t number, const char *why) {
    struct process *p = process_find(l, number);
    if (p && p->state == PROCESS_ASKED)
        process_end(p, 0, why);
}

static const char *why_never_ready(const struct process *p) {
    if (p->state == PROCESS_READY)
        return NULL;
    if (p->why[0])
        return p->why;
    return p->doomed ? NULL : "it died before it was ready";
}

/* What it said before it ended, a part of it at least, and then its end. */
static void process_finish_some(struct process *p) {
    struct live *l = p->live;
    uint32_t number = p->number;
    if (p->state != PROCESS_ASKED) {
        if (p->ctl->paused)
            chan_resume(p->ctl);
        bool more = chan_pump(p->ctl);
        if (process_find(l, number) != p) /* its owner has ended with that */
            return;
        if (more && p->last_words > 0) {
            loop_share_wait(&l->shared->hearing, &p->ending);
            return;
        }
    }
    process_end(p, p->status, why_never_ready(p));
}

/* SECURITY: many may end at once, each with a lot to say and to be printed: that counts as what
 * others say does. And not while one message is being read: the next would overtake it. */
static void process_finish(struct process *p) {
    struct loop_share *s = &p->live->shared->hearing;
    if (p->state == PROCESS_READY && p->kind->is_heard && p->kind->is_heard(p->owner))
        return; /* see processes_end_exited */
    if (!loop_share_begin(s, &p->ending))
        return;
    process_finish_some(p);
    loop_share_end(s);
}

static void process_on_ending(struct loop_sharer *who) {
    process_finish(who->arg);
}

void processes_exited(struct live *l, uint32_t number, int status) {
    struct process *p = process_find(l, number);
    if (!p || p->has_exited)
        return;
    p->has_exited = true;
    p->status = status;
    p->last_words = LAST_WORDS;
    p->ending = (struct loop_sharer){
        .fn = process_on_ending, .arg = p, .owner = crew_owner(p->live->req.tenant)};
    process_finish(p);
}

void processes_end_exited(struct live *l) {
    if (l->state != LIVE_RUNNING)
        return;
    for (struct process *p = l->processes; p; p = p->next) {
        if (p->has_exited)
            loop_share_wait(&l->shared->hearing, &p->ending);
    }
}

void processes_frame(struct live *l, struct wire_in *in) {
    struct process *p = process_find(l, 0);
    if (p)
        process_said(p, in);
}

void processes_hung_up(struct live *l) {
    struct process *p = process_find(l, 0);
    if (p)
        process_hung_up(p);
}

static void answered(void *arg, struct wire_in *in) {
    (void)arg, (void)in; /* a process that is gone already has no signals to take */
}

void process_signal_message(const struct process *p, int sig, enum signal_scope scope,
                            struct wire_out *ret) {
    i_signal_put(ret, &(struct i_signal){p->number, (uint32_t)sig, scope});
}

void process_signal(struct process *p, int sig, enum signal_scope scope) {
    struct wire_out o;
    if (p->state != PROCESS_READY && p->state != PROCESS_STARTING)
        return;
    process_signal_message(p, sig, scope, &o);
    sandbox_ask_for(p->live->sandbox, &o, answered, p->live);
}

void process_close_stdin(struct process *p) {
    struct wire_out o;
    if (p->fds[0] < 0)
        return;
    fd_close(&p->fds[0]);
    w_shut_put(&o, &(struct w_shut){.sandbox = p->live->sandbox->id,
                                    .number = p->number}); /* the warden has a copy */
    chan_send(&p->live->engine->warden, &o);
}

void process_kill(struct process *p) {
    p->doomed = true;
    loop_timer_in_ms(p->live->engine->loop, &p->deadline, READY_MS);
    process_signal(p, SIGKILL, SIGNAL_TREE);
}
