/* See live_requests.h. */

#include "api/jobs/live_requests.h"

#include "api/jobs/job_wait.h"

#include <stdlib.h>

struct live_making {
    struct job_wait wait; /* for a live sandbox that is not ready */
    void (*reply)(struct outlet *o, struct live *l);
    bool starting, failed, done;
    struct err why;
};

struct live_request live_request_for(const struct caller *who) {
    return (struct live_request){.tenant = xstrdup(who->tenant),
                                 .payer = who->key[0] ? xstrdup(who->key) : NULL,
                                 .most_of_tenant = who->limits.sandboxes};
}

static void live_making_leave(void *job) {
    live_cancel(job);
}

static void live_making_on_ready(void *arg, struct live *l, const struct err *why) {
    struct live_making *m = arg;
    m->done = true;
    if (m->starting && why) { /* live_new's caller says so */
        m->failed = true;
        m->why = *why;
        return;
    }
    if (why) {
        struct problem p = problem_of(why);
        outlet_problem(&m->wait.out, &p);
    } else {
        m->reply(&m->wait.out, l);
    }
    job_wait_over(&m->wait);
}

static void live_making_start(struct live_making *m, struct call *c, struct live_request *q) {
    struct live *l = NULL;
    struct err e;
    m->starting = true;
    int r = live_new(c->api->o.engine, q, live_making_on_ready, m, &l, &e);
    m->starting = false;
    if (r == 0 && !m->failed) {
        m->wait.job = m->done ? NULL : l;
        return;
    }
    struct problem p = problem_of(r < 0 ? &e : &m->why);
    outlet_problem(&m->wait.out, &p);
}

void live_requests_make(struct call *c,
                        int (*read)(struct call *c, struct live_request *q, struct problem *p),
                        void (*reply)(struct outlet *o, struct live *l)) {
    struct live_request q;
    struct problem p = {0};
    struct live_making *m = job_wait_new(c, sizeof *m, live_making_leave);
    if (!m)
        return;
    m->reply = reply;
    if (read(c, &q, &p) < 0)
        outlet_problem(&m->wait.out, &p);
    else
        live_making_start(m, c, &q);
    live_request_done(&q); /* empty when it was taken */
}

struct live_ending {
    struct call *call; /* NULL: whoever asked is gone */
    void (*reply)(struct call *c);
};

static void live_ending_on_ended(void *arg) {
    struct live_ending *w = arg;
    if (w->call) {
        w->call->state = NULL;
        w->call->state_done = NULL;
        w->reply(w->call);
    }
    free(w);
}

static void reply_ended(struct call *c) {
    http_reply(c->req, 204, NULL, "", 0);
}

static void live_ending_leave(void *state) {
    struct live_ending *w = state;
    w->call = NULL;
}

void live_requests_end(struct call *c, struct live *l, void (*reply)(struct call *c)) {
    struct live_ending *w = xcalloc(1, sizeof *w);
    w->call = c;
    w->reply = reply ? reply : reply_ended;
    c->state = w;
    c->state_done = live_ending_leave;
    live_end(l, "it was deleted", live_ending_on_ended, w);
}
