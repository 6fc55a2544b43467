/* See command_wait.h. When a command is over, what it printed stays for the one who looks through
 * it, and the command itself goes. */

#include "api/jobs/command_wait.h"

#include "api/core/quota.h"
#include "api/jobs/command_job.h"
#include "base/clock.h"
#include "base/rope.h"
#include "loop/crew.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHORT 4096 /* bytes that are looked through in the loop */

struct command_wait {
    struct call *call;       /* NULL: whoever asked is gone */
    struct command *command; /* borrowed while it runs, else NULL */
    struct command_wait_options o;
    char *word; /* owned */
    /* when it is over */
    struct command_end end; /* owned: its texts */
    struct command_found found;
    struct work work;
    struct engine *engine; /* borrowed */
    char tenant[65], sandbox[ID_MAX];
    uint64_t cpu_ns;
};

static void wait_free(struct command_wait *w) {
    blob_unref(w->end.text[0]);
    blob_unref(w->end.text[1]);
    buf_done(&w->found.json);
    free(w->found.words[0]);
    free(w->found.words[1]);
    free(w->word);
    free(w);
}

static void finish(struct command_wait *w) {
    struct call *c = w->call;
    if (c) {
        c->state = NULL;
        c->state_done = NULL;
        w->o.then(c, &w->end, &w->found);
    }
    wait_free(w);
}

static void look(struct command_wait *w) {
    if (w->o.look)
        w->o.look(&w->end, w->word, &w->found);
}

static bool wait_slice(struct work *work) {
    struct command_wait *w = work->arg;
    uint64_t began = thread_cpu_ns();
    look(w);
    w->cpu_ns = thread_cpu_ns() - began;
    return false;
}

/* The sandbox pays, if it is there still. */
static void wait_on_looked(struct work *work) {
    struct command_wait *w = work->arg;
    struct err e;
    struct live *l = live_find(w->engine, w->tenant, w->sandbox, &e);
    if (l)
        live_heard(l, w->cpu_ns);
    finish(w);
}

static void command_wait_on_done(void *arg, struct command *m) {
    struct command_wait *w = arg;
    w->end = command_end(m);
    blob_ref(w->end.text[0]);
    blob_ref(w->end.text[1]);
    w->command = NULL;
    command_delete(m);
    size_t len = w->end.text[0]->bytes.len + w->end.text[1]->bytes.len;
    if (!w->call || !w->o.look || len <= SHORT) {
        if (w->call)
            look(w);
        finish(w);
        return;
    }
    w->work = (struct work){.slice = wait_slice,
                            .done = wait_on_looked,
                            .arg = w,
                            .owner = crew_owner(w->tenant),
                            .is_long = len > CREW_LONG / 8}; /* of many values */
    crew_add(w->engine->crew, &w->work);
}

static void command_wait_leave(void *state) {
    struct command_wait *w = state;
    w->call = NULL;
    if (w->command)
        command_delete(w->command);
}

void command_wait(struct call *c, struct live *l, struct command_request *q,
                  const struct command_wait_options *o) {
    struct command_wait *w = xcalloc(1, sizeof *w);
    const struct command_callbacks cb = {.arg = w, .on_done = command_wait_on_done};
    struct problem p = {0};
    struct err e;
    *w = (struct command_wait){.call = c,
                               .o = *o,
                               .word = o->word ? xstrdup(o->word) : NULL,
                               .found = {.json = BUF_INIT},
                               .engine = c->api->o.engine};
    memcpy(w->tenant, c->who.tenant, sizeof w->tenant);
    snprintf(w->sandbox, sizeof w->sandbox, "%s", live_id(l));
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
    wait_free(w);
}
