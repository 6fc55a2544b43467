/* See job_wait.h. */

#include "api/jobs/job_wait.h"

#include <stdlib.h>

static void job_wait_free(void *state) {
    struct job_wait *w = state;
    void *job = w->job;
    w->job = NULL;
    if (job) /* SECURITY: it would tell one who is not there any more */
        w->leave(job);
    if (w->done)
        w->done(w);
    outlet_done(&w->out);
    free(w);
}

static void job_wait_on_gone(struct http_req *r) {
    struct call *c = http_user(r);
    struct job_wait *w = c->state;
    if (!w || !w->job)
        return;
    if (outlet_leave(&w->out)) {
        if (w->alone)
            w->alone(w);
        return;
    }
    void *job = w->job;
    w->job = NULL;
    w->leave(job);
}

void *job_wait_new(struct call *c, size_t size, void (*leave)(void *job)) {
    struct job_wait *w = xcalloc(1, size);
    if (!outlet_open(c, &w->out)) {
        free(w);
        return NULL;
    }
    w->leave = leave;
    c->state = w;
    c->state_done = job_wait_free;
    http_on_gone(c->req, job_wait_on_gone);
    return w;
}

void job_wait_over(struct job_wait *w) {
    w->job = NULL;
    if (!w->out.call)
        job_wait_free(w);
}
