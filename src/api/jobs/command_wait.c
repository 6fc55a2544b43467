/* See command_wait.h. */

#include "api/jobs/command_wait.h"

#include "api/core/quota.h"
#include "api/jobs/command_job.h"

#include <stdlib.h>

struct command_wait {
    struct call *call;       /* NULL: whoever asked is gone */
    struct command *command; /* borrowed while it runs */
    void (*then)(struct call *c, const struct command_end *end);
};

static void command_wait_on_done(void *arg, struct command *m) {
    struct command_wait *w = arg;
    struct call *c = w->call;
    struct command_end end = command_end(m);
    if (c) {
        c->state = NULL;
        c->state_done = NULL;
        w->then(c, &end);
    }
    command_delete(m);
    free(w);
}

static void command_wait_leave(void *state) {
    struct command_wait *w = state;
    w->call = NULL;
    command_delete(w->command);
}

void command_wait(struct call *c, struct live *l, struct command_request *q,
                  void (*then)(struct call *c, const struct command_end *end)) {
    struct command_wait *w = xcalloc(1, sizeof *w);
    const struct command_callbacks cb = {.arg = w, .on_done = command_wait_on_done};
    struct problem p = {0};
    struct err e;
    w->call = c;
    w->then = then;
    command_asked_by(q, &c->who);
    if (quota_may_run(&c->who, &p) < 0) {
        call_problem(c, &p);
    } else if (command_new(l, q, &cb, &w->command, &e) < 0) {
        call_fail(c, &e);
    } else {
        c->state = w;
        c->state_done = command_wait_leave;
        return;
    }
    command_request_done(q);
    free(w);
}
