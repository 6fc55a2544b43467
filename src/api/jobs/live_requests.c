/* See making.h. */

#include "api/jobs/live_requests.h"

#include <stdlib.h>

struct making {
    struct outlet out;
    void (*reply)(struct outlet *o, struct live *l);
    struct live *live; /* borrowed until it is ready */
    bool starting, failed, done;
    struct err why;
};

struct live_request live_request_of(const struct call *c) {
    return (struct live_request){.tenant = xstrdup(c->tenant),
                                 .payer = c->key_id[0] ? xstrdup(c->key_id) : NULL,
                                 .most_of_tenant = c->limits.sandboxes};
}

static void free_making(void *state) {
    struct making *m = state;
    outlet_done(&m->out);
    free(m);
}

static void on_gone(struct http_req *r) {
    struct call *c = http_user(r);
    struct making *m = c->state;
    if (!m || !m->live || outlet_leave(&m->out))
        return;
    struct live *l = m->live;
    m->live = NULL;
    live_cancel(l);
}

static void on_ready(void *arg, struct live *l, const struct err *why) {
    struct making *m = arg;
    m->live = NULL;
    m->done = true;
    if (m->starting && why) { /* live_new's caller says so */
        m->failed = true;
        m->why = *why;
        return;
    }
    if (why) {
        struct problem p = problem_of(why);
        outlet_problem(&m->out, &p);
    } else {
        m->reply(&m->out, l);
    }
    if (!m->out.call)
        free_making(m);
}

static void start(struct making *m, struct call *c, struct live_request *q) {
    struct live *l = NULL;
    struct err e;
    m->starting = true;
    int r = live_new(c->api->o.engine, q, on_ready, m, &l, &e);
    m->starting = false;
    if (r == 0 && !m->failed) {
        m->live = m->done ? NULL : l;
        return;
    }
    struct problem p = problem_of(r < 0 ? &e : &m->why);
    outlet_problem(&m->out, &p);
}

void make_live(struct call *c,
               int (*read)(struct call *c, struct live_request *q, struct problem *p),
               void (*reply)(struct outlet *o, struct live *l)) {
    struct live_request q;
    struct problem p = {0};
    struct making *m = xcalloc(1, sizeof *m);
    if (!outlet_open(c, &m->out)) {
        free(m);
        return;
    }
    m->reply = reply;
    c->state = m;
    c->state_done = free_making;
    http_on_gone(c->req, on_gone);
    if (read(c, &q, &p) < 0)
        outlet_problem(&m->out, &p);
    else
        start(m, c, &q);
    live_request_done(&q); /* empty when it was taken */
}

struct ending {
    struct call *call; /* NULL: whoever asked is gone */
    void (*reply)(struct call *c);
};

static void on_ended(void *arg) {
    struct ending *w = arg;
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

static void leave_ending(void *state) {
    struct ending *w = state;
    w->call = NULL;
}

void end_live(struct call *c, struct live *l, void (*reply)(struct call *c)) {
    struct ending *w = xcalloc(1, sizeof *w);
    w->call = c;
    w->reply = reply ? reply : reply_ended;
    c->state = w;
    c->state_done = leave_ending;
    live_end(l, "it was deleted", on_ended, w);
}
