/* See file_work.h. Every slice comes back to the loop, so that it is paid for soon, and so that the
 * work for a call or a sandbox that is gone ends.
 *
 * SECURITY: a client may begin such work and leave, again and again. What it leaves is freed when
 * its turn comes, without another slice; until then it counts among what the tenant may have at
 * once. */

#include "api/files/file_work.h"

#include "base/buf.h"
#include "base/clock.h"
#include "engine/store/spool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLICE_NS NS_PER_MS
#define MOST     128u /* of a tenant's: each has some 300 KB of buffers */

static bool file_work_slice(struct work *work) {
    struct file_work *w = work->arg;
    w->began_ns = thread_cpu_ns();
    if (!w->is_over && !atomic_load(&w->is_left))
        w->slice(w);
    if (w->is_over || atomic_load(&w->is_left)) {
        w->empty(w);
        w->is_over = true;
    }
    w->cpu_ns = thread_cpu_ns() - w->began_ns;
    return false;
}

bool file_work_has_time(const struct file_work *w) {
    return thread_cpu_ns() - w->began_ns < SLICE_NS;
}

static void pay(const struct file_work *w, uint64_t cpu_ns) {
    struct err e;
    struct live *l = live_find(w->api->o.engine, w->tenant, w->sandbox, &e);
    if (l)
        live_served(l, cpu_ns);
}

static void end(struct file_work *w) {
    w->is_over = true;
    file_work_go(w);
}

static void free_work(struct file_work *w) {
    if (w->place.bytes)
        store_spool_give(w->api->o.store, w->place.bytes);
    shares_remove(&w->api->archives, &w->place);
    free(w);
}

static void file_work_on_done(struct work *work) {
    struct file_work *w = work->arg;
    uint64_t cpu_ns = w->cpu_ns, began = thread_cpu_ns();
    w->is_beside = false;
    if (w->is_over) {
        pay(w, cpu_ns);
        free_work(w);
        return;
    }
    if (!w->fc)
        end(w);
    else if (file_call_live(w->fc))
        w->then(w->fc);
    pay(w, cpu_ns + thread_cpu_ns() - began); /* it is not freed before another slice */
}

void *file_work_new(struct file_call *fc, size_t size, const struct file_work *how) {
    struct call *c = fc->call;
    if (shares_count(&c->api->archives, c->who.tenant) >= MOST) {
        call_refuse(c, "too_many_archives", "%u archives of yours are on their way", MOST);
        return NULL;
    }
    struct file_work *w = xcalloc(1, size);
    *w = *how;
    w->work = (struct work){.slice = file_work_slice,
                            .done = file_work_on_done,
                            .arg = w,
                            .owner = crew_owner(c->who.tenant),
                            .is_long = how->work.is_long};
    w->fc = fc;
    w->api = c->api;
    w->crew = c->api->o.engine->crew;
    memcpy(w->tenant, c->who.tenant, sizeof w->tenant);
    snprintf(w->sandbox, sizeof w->sandbox, "%s", fc->id);
    shares_add(&w->api->archives, &w->place, w->tenant, 0);
    return w;
}

void file_work_go(struct file_work *w) {
    w->is_beside = true;
    crew_add(w->crew, &w->work);
}

void file_work_leave(struct file_work *w) {
    if (!w)
        return;
    w->fc = NULL;
    atomic_store(&w->is_left, true);
    if (!w->is_beside)
        end(w);
}

int file_work_spool(struct file_work *w, uint64_t bytes, struct err *e) {
    if (store_spool_take(w->api->o.store, bytes, e) < 0)
        return -1;
    shares_resize(&w->api->archives, &w->place, w->place.bytes + bytes);
    return 0;
}

uint64_t file_work_spooled(const struct file_work *w) {
    uint64_t sum = 0;
    for (const struct share_item *it = w->place.share->oldest; it; it = it->newer) {
        const struct file_work *other = (const struct file_work *)it;
        if (other->fc && strcmp(other->sandbox, w->sandbox) == 0)
            sum += it->bytes;
    }
    return sum;
}
