/* See reading.h. What the slices touch is an object of its own: a call that is taken back leaves it
 * behind. The sandbox pays. */

#include "api/mcp/reading.h"

#include "api/core/api_state.h"
#include "api/mcp/place.h"
#include "base/clock.h"
#include "base/fd.h"
#include "loop/crew.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

struct reading_work {
    struct work work;
    struct window w;
    struct reading *of; /* NULL: the call is gone */
    atomic_bool is_left;
    struct api *api; /* borrowed */
    char tenant[65], sandbox[ID_MAX];
    uint64_t cpu_ns; /* that the last slice took */
    bool more;       /* there is another one */
};

static bool reading_slice(struct work *work) {
    struct reading_work *k = work->arg;
    uint64_t began = thread_cpu_ns();
    k->more = !atomic_load(&k->is_left) && window_slice(&k->w);
    k->cpu_ns = thread_cpu_ns() - began;
    return false;
}

static void reading_end(struct reading_work *k) {
    crew_close(k->api->o.engine->crew, &k->w.fd); /* it may be the last who has the file */
    window_done(&k->w);
    free(k);
}

static void reading_tell(struct reading_work *k) {
    struct reading *r = k->of;
    r->work = NULL;
    if (k->w.failed)
        file_job_fail(&r->f, EIO, "the file cannot be read");
    else
        r->then(r, &k->w);
}

/* Each slice is paid for before the next one; none comes for a call or a sandbox that is gone. */
static void reading_on_read(struct work *work) {
    struct reading_work *k = work->arg;
    struct err e;
    struct live *l = live_find(k->api->o.engine, k->tenant, k->sandbox, &e);
    if (l)
        live_served(l, k->cpu_ns);
    if (k->of && k->more && file_job_live(&k->of->f)) { /* or the call has its answer */
        crew_add(k->api->o.engine->crew, &k->work);
        return;
    }
    if (k->of)
        reading_tell(k);
    reading_end(k);
}

static void reading_leave(struct file_job *f) {
    struct reading *r = (struct reading *)f;
    if (!r->work)
        return;
    r->work->of = NULL;
    atomic_store(&r->work->is_left, true);
}

static void reading_on_open(struct file_job *f, struct file_answer *a) {
    struct reading *r = (struct reading *)f;
    const struct caller *who = &mcp_who(f->call)->caller;
    struct reading_work *k = r->work;
    k->w.fd = fd_take(&a->fd);
    k->of = r;
    k->api = who->api;
    snprintf(k->tenant, sizeof k->tenant, "%s", who->tenant);
    snprintf(k->sandbox, sizeof k->sandbox, "%s", f->sandbox);
    k->work = (struct work){
        .slice = reading_slice, .done = reading_on_read, .arg = k, .owner = crew_owner(k->tenant)};
    f->on_done = reading_leave;
    crew_add(who->api->o.engine->crew, &k->work);
}

/* It was never opened. */
static void reading_drop(struct file_job *f) {
    struct reading *r = (struct reading *)f;
    window_done(&r->work->w);
    free(r->work);
}

static bool reading_on_error(struct file_job *f, int errnum) {
    if (errnum == EISDIR)
        file_job_fail(f, ENOENT, "this is a directory");
    else if (errnum == ENXIO)
        file_job_fail(f, ENOENT, "this is no regular file");
    else
        return false;
    return true;
}

void reading_begin(struct mcp_call *c, struct live *l, const char *path, const struct window *how,
                   void (*then)(struct reading *r, const struct window *w)) {
    struct reading *r = file_job_new(c, l, path, sizeof *r, NULL);
    if (!r)
        return;
    r->work = xcalloc(1, sizeof *r->work);
    r->work->w = *how;
    r->work->w.fd = -1;
    r->work->w.text = (struct buf)BUF_INIT;
    r->then = then;
    r->f.on_done = reading_drop;
    r->f.on_error = reading_on_error;
    file_job_ask(&r->f, &(struct file_question){.op = FILE_READ, .path = r->f.path},
                 reading_on_open);
}
