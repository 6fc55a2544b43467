/* See heard.h. Most programs say one thing, K_DONE. One that shows its values and figures
 * (RUN_SHOWN) says each of them before that, and waits for an answer: so what it prints next comes
 * behind it, and a slow reader, or a rest, holds it up. What is long is read beside the loop.
 *
 * SECURITY: the kernel is hostile. It pays for the time that we need to hear it, and rests from it
 * as from what it prints; what it shows has bounds (shown.h); one that does not wait for its answer
 * is ended. It is believed only about itself. */

#include "engine/oneshot/heard.h"

#include "base/clock.h"
#include "base/json.h"
#include "engine/core/engine.h"
#include "engine/core/memfd_read.h"
#include "engine/oneshot/collect.h"
#include "engine/oneshot/internal.h"
#include "engine/said/said_long.h"
#include "engine/said/told.h"
#include "loop/crew.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define LAST_WORDS 32 /* others may have its socket, and go on */

struct run_hearing {
    struct said_long what; /* the first member */
    struct run *run;       /* borrowed; NULL when nobody listens any more */
};

static void end_when_heard(struct run *r);

bool run_shows(const struct run *r) {
    return r->req.flags & RUN_SHOWN;
}

static uint64_t owner_of(const struct run *r) {
    return crew_owner(r->guest.tenant);
}

void run_hear_from(struct run *r) {
    if (!run_shows(r))
        return;
    chan_set_share(&r->sandbox->ctl, &r->engine->reading, owner_of(r));
    r->shown.cut = r->sandbox->version < RUN_SHOW_SINCE; /* its zygote does not know how */
}

bool run_goes_on(const struct run *r) {
    return r->state == RUN_ACTIVE && r->end == END_NONE;
}

bool run_is_heard(const struct run *r) {
    return r->hearing != NULL;
}

void run_unhear(struct run *r) {
    loop_share_leave(&r->ending);
    if (r->hearing)
        r->hearing->run = NULL;
    r->hearing = NULL;
}

/* ---- what it shows ---- */

/* Nothing that it says counts any more. */
static void run_forged(struct run *r) {
    run_kill(r, END_EXIT);
    r->outcome.signal = SIGKILL;
}

static void run_show(struct run *r, struct said *s, bool is_main) {
    struct shown_output o;
    r->shown.cut |= s->cut || said_true(s, "cut");
    shown_read(s, is_main, 1, &o);
    if (!r->cancelled && r->cb.on_event)
        r->cb.on_event(r->cb.arg, is_main ? "result" : "display", &o.text);
    shown_keep(&r->shown, &o);
}

/* What is answered comes as its stdin. */
static void run_ask(struct run *r, struct said *s) {
    AUTO_BUF json = BUF_INIT;
    told_input(said_str(s, "prompt"), said_true(s, "password"), &json);
    if (!r->cancelled && r->cb.on_event)
        r->cb.on_event(r->cb.arg, "input", &json);
}

/* SECURITY: one that reads its answers leaves room for the next. */
static void answer(struct run *r) {
    struct chan *ctl = &r->sandbox->ctl;
    AUTO_BUF json = BUF_INIT;
    struct wire_out o;
    r->owes_answer = false;
    said_go(1, &json);
    k_do_put(&o, &(struct k_do){.json = {json.data, json.len}, .file = -1});
    if (ctl->queued)
        run_forged(r);
    else
        chan_send(ctl, &o);
}

void run_go_on(struct run *r) {
    if (run_goes_on(r) && !r->has_exited && r->owes_answer && !r->hearing && !r->is_held &&
        !rest_is_on(&r->rest))
        answer(r);
}

/* Takes `s`. */
static void run_hear(struct run *r, struct said *s) {
    const char *kind = said_str(s, "ev");
    bool is_main = kind && strcmp(kind, "result") == 0;
    run_catch_up(r); /* what it printed before it spoke */
    if (r->state == RUN_ACTIVE && kind && (is_main || strcmp(kind, "display") == 0))
        run_show(r, s, is_main);
    else if (r->state == RUN_ACTIVE && kind && strcmp(kind, "input") == 0 &&
             r->req.flags & RUN_ASKS)
        run_ask(r, s);
    said_done(s);
}

static void run_heard(struct run *r, struct run_hearing *h) {
    r->hearing = NULL;
    said_long_leave(&h->what, &r->sandbox->ctl);
    if (r->state == RUN_ACTIVE && h->what.is_bad)
        run_forged(r);
    else if (r->state == RUN_ACTIVE)
        run_hear(r, &h->what.said);
}

/* The message may have ended the run, whose memory stays for this turn. */
static void run_on_heard(struct said_long *what) {
    struct run_hearing *h = (struct run_hearing *)what;
    struct run *r = h->run;
    uint64_t began = thread_cpu_ns();
    if (r) {
        run_heard(r, h);
        run_pay(r, what->cpu_ns + thread_cpu_ns() - began);
        run_go_on(r);
        end_when_heard(r);
    }
    said_long_end(what);
    free(h);
}

static void run_hear_long(struct run *r, struct wire_in *in, const struct k_say *m) {
    r->hearing = xcalloc(1, sizeof *r->hearing);
    *r->hearing =
        (struct run_hearing){.what = {.crew = r->engine->crew, .done = run_on_heard}, .run = r};
    said_long_begin(&r->hearing->what, owner_of(r), in, m);
}

static void run_on_say(struct run *r, struct wire_in *in) {
    struct k_say m;
    struct said s;
    uint64_t began = thread_cpu_ns();
    enum said_how how = r->owes_answer ? SAID_BAD : said_get(in, &m, &s);
    r->owes_answer = how != SAID_BAD;
    if (how == SAID_LONG)
        run_hear_long(r, in, &m);
    else if (how == SAID_BAD)
        run_forged(r);
    else
        run_hear(r, &s);
    run_pay(r, thread_cpu_ns() - began);
    run_go_on(r);
}

/* ---- its end ---- */

static void take_returned(struct run *r, const struct done_msg *d) {
    int fd = d->result_fd;
    bool wanted = (r->req.flags & RUN_HANDLER) && d->how == DONE_RETURNED;
    if (wanted && fd < 0)
        buf_add(&r->returned, d->result, d->result_len);
    else if (wanted && memfd_read(fd, DONE_MAX_RESULT, &r->returned) < 0)
        buf_clear(&r->returned);
    chan_leave(&r->sandbox->ctl, &fd, 1);
}

static void take_done(struct run *r, const struct done_msg *d) {
    take_returned(r, d);
    r->how = d->how;
    r->outcome.exit_code = (int)d->exit_code;
    r->said_cpu_us = d->cpu_us;
    if (*d->name) {
        r->error_name = xstrdup(d->name);
        r->error_value = xstrdup(d->value);
        r->traceback = xcalloc(d->nlines, sizeof *r->traceback);
        for (; r->ntraceback < d->nlines; r->ntraceback++)
            r->traceback[r->ntraceback] = xstrdup(d->lines[r->ntraceback]);
    }
    if (d->how == DONE_REFUSED)
        denials_add(&r->outcome.denied, "program", d->value, "policy restricted");
    run_ended(r, END_DONE);
    end_when_heard(r);
}

/* K_DONE from a hostile process: bounded and checked by done_get, believed only about itself. */
void run_on_frame(void *owner, struct wire_in *in) {
    struct run *r = owner;
    struct done_msg d;
    struct err e;
    if (!run_goes_on(r))
        return;
    if (in->type == WIRE_K_SAY && run_shows(r)) {
        run_on_say(r, in);
        return;
    }
    run_catch_up(r);
    if (r->state != RUN_ACTIVE)
        return;
    if (in->type == WIRE_K_BROKEN) {
        struct k_broken m;
        k_broken_get(in, &m, &e);
        err_set(&e, EIO, "the kernel could not start: %.300s", m.why);
        run_fail(r, &e);
        return;
    }
    if (in->type != WIRE_K_DONE || done_get(in, &d, &e) < 0)
        run_forged(r);
    else
        take_done(r, &d);
}

/* It has exited, and K_DONE, if it sent one, is here already. */
static void end_without_word(struct run *r) {
    bool more = chan_pump(&r->sandbox->ctl);
    if (!run_goes_on(r) || r->hearing)
        return;
    if (more && run_shows(r) && r->last_words-- > 0) {
        loop_share_wait(&r->engine->reading, &r->ending);
        return;
    }
    run_catch_up(r);
    if (r->state != RUN_ACTIVE)
        return;
    outcome_exited(&r->outcome, r->status);
    run_ended(r, END_EXIT);
    run_collect(r);
}

/* Not before what it has shown is read. */
static void end_when_heard(struct run *r) {
    if (r->state != RUN_ACTIVE || r->hearing)
        return;
    if (r->end == END_DONE)
        run_collect(r);
    else if (r->has_exited)
        end_without_word(r);
}

static void run_on_ending(struct loop_sharer *who) {
    end_when_heard(who->arg);
}

void run_on_exited(void *owner, uint32_t number, int status) {
    struct run *r = owner;
    (void)number;
    if (r->has_exited)
        return;
    r->has_exited = true;
    r->status = status;
    r->last_words = LAST_WORDS;
    r->ending = (struct loop_sharer){.fn = run_on_ending, .arg = r, .owner = owner_of(r)};
    end_when_heard(r);
}
