/* See jupyter.h. Hubs: who is connected to a kernel, and what goes to whom.
 *
 * A message is either for all (iopub) or for the one who asked; that is the same connection, or one
 * with the same session after it was cut. When nobody is connected any more, messages are kept for
 * the session that left last, up to a bound: the oldest go first.
 *
 * SECURITY: what is kept is the server's memory, for as long as nobody comes back. It counts in the
 * account of the sandbox, and a tenant's kernels share a bound. */

#include "api/dialects/jupyter/jupyter.h"

#include "api/core/doors.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/text.h"
#include "engine/core/sandbox.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define KEPT_MAX  (8u << 20)  /* bytes for a client that is away */
#define KEPT_MOST (16u << 20) /* for all of a tenant's together */

/* ---- names ---- */

double jupyter_now(void) {
    return (double)clock_ns(CLOCK_REALTIME) / 1e9;
}

void jupyter_date(char *to, size_t cap, double when) {
    struct tm tm;
    char day[40] = "";
    if (text_date(when, &tm))
        strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(to, cap, "%s.%06uZ", day, (unsigned)(fmod(when, 1) * 1e6));
}

void jupyter_uuid(const char *kernel_id, char to[JUPYTER_UUID]) {
    static const uint8_t groups[] = {8, 4, 4, 4, 12};
    const char *at = strchr(kernel_id, '_') + 1;
    for (size_t i = 0; i < sizeof groups; i++) {
        memcpy(to, at, groups[i]);
        at += groups[i];
        to += groups[i];
        *to++ = i + 1 < sizeof groups ? '-' : '\0';
    }
}

/* ---- finding them ---- */

static void on_news(struct kernel_watcher *w, enum kernel_news news);
static void hub_on_later(struct deferred *d);
static void on_cull(struct timer *t);

static struct jupyter_hub *hub_make(struct api *a, struct kernel *k) {
    struct jupyter_hub *h = xcalloc(1, sizeof *h);
    struct jupyter *j = dialect_state(a, &jupyter_dialect);
    struct live *l = kernel_live(k);
    h->api = a;
    snprintf(h->tenant, sizeof h->tenant, "%s", live_tenant(l));
    snprintf(h->sandbox, sizeof h->sandbox, "%s", live_id(l));
    snprintf(h->kernel, sizeof h->kernel, "%s", kernel_id(k));
    jupyter_uuid(h->kernel, h->uuid);
    id_make("", h->session, sizeof h->session);
    h->last_activity = jupyter_now();
    h->queue_end = &h->queue;
    jupyter_events_init(h);
    jupyter_post_init(h);
    h->kept_end = &h->kept;
    h->watcher = (struct kernel_watcher){.on_news = on_news, .arg = h};
    h->later = (struct deferred){.fn = hub_on_later, .arg = h};
    h->cull = (struct timer){.fn = on_cull, .arg = h};
    kernel_watch(k, &h->watcher);
    jupyter_label_read(h);
    h->next = j->hubs;
    j->hubs = h;
    shares_add(&j->away, &h->away, h->tenant, 0);
    on_cull(&h->cull);
    return h;
}

struct jupyter_hub *jupyter_hub(struct api *a, struct kernel *k) {
    const struct kernel_watcher *w = kernel_watched(k, on_news);
    return w ? w->arg : hub_make(a, k);
}

void jupyter_adopt(struct api *a) {
    struct engine *g = a->o.engine;
    for (struct live *l = live_next(g, NULL, NULL); l; l = live_next(g, NULL, l)) {
        for (struct kernel *k = kernel_next(l, NULL); k; k = kernel_next(l, k)) {
            if (kernel_label(k))
                jupyter_hub(a, k);
        }
    }
}

struct jupyter_hub *jupyter_find(const struct call *c, const char *uuid) {
    struct engine *g = c->api->o.engine;
    char own[JUPYTER_UUID];
    for (struct live *l = live_next(g, c->who.tenant, NULL); l;
         l = live_next(g, c->who.tenant, l)) {
        for (struct kernel *k = kernel_next(l, NULL); k; k = kernel_next(l, k)) {
            if (!kernel_label(k) || !call_means(c, l))
                continue;
            jupyter_uuid(kernel_id(k), own);
            if (strcmp(own, uuid) == 0)
                return jupyter_hub(c->api, k);
        }
    }
    return NULL;
}

struct kernel *jupyter_kernel(struct jupyter_hub *h) {
    return h->watcher.kernel;
}

void jupyter_heard(struct jupyter_hub *h, uint64_t cpu_ns) {
    struct kernel *k = jupyter_kernel(h);
    if (k)
        live_heard(kernel_live(k), cpu_ns);
}

/* ---- messages ---- */

struct jupyter_out *jupyter_out(struct jupyter_hub *h, const char *channel, const char *type,
                                const char *parent) {
    struct jupyter_out *m = xcalloc(1, sizeof *m);
    char date[48];
    m->channel = channel;
    snprintf(m->type, sizeof m->type, "%s", type);
    snprintf(m->id, sizeof m->id, "%s_%llu", h->session, (unsigned long long)++h->last_message);
    m->header = m->parent = m->metadata = m->content = (struct buf)BUF_INIT;
    jupyter_date(date, sizeof date, jupyter_now());
    struct jw j = JW_INIT(&m->header);
    jw_object(&j);
    jw_key_str(&j, "msg_id", m->id);
    jw_key_str(&j, "msg_type", m->type);
    jw_key_str(&j, "username", "cloche");
    jw_key_str(&j, "session", h->session);
    jw_key_str(&j, "date", date);
    jw_key_str(&j, "version", JUPYTER_VERSION);
    jw_object_end(&j);
    buf_adds(&m->parent, parent ? parent : "{}");
    buf_adds(&m->metadata, "{}");
    return m;
}

static struct jupyter_out *take_oldest(struct jupyter_hub *h) {
    struct jupyter_out *m = LIST_POP(&h->kept, next);
    if (!h->kept)
        h->kept_end = &h->kept;
    h->kept_bytes -= jupyter_out_size(m);
    m->next = NULL;
    return m;
}

/* NULL: it is gone, or about to go. */
static struct kept *account_of(const struct jupyter_hub *h) {
    struct err e;
    const struct live *l = live_find(h->api->o.engine, h->tenant, h->sandbox, &e);
    return l ? &live_sandbox(l)->guest->kept : NULL;
}

/* After it began to keep more or less. */
static void count_kept(struct jupyter_hub *h) {
    struct jupyter *j = dialect_state(h->api, &jupyter_dialect);
    struct kept *account = account_of(h);
    if (account)
        kept_count(account, h->away.bytes, h->kept_bytes);
    shares_resize(&j->away, &h->away, h->kept_bytes);
}

static void forget_oldest(struct jupyter_hub *h) {
    jupyter_out_free(take_oldest(h));
    count_kept(h);
}

/* Of that tenant. */
static struct jupyter_hub *keeps_most(const struct share *s) {
    struct share_item *most = s->oldest;
    for (struct share_item *it = most; it; it = it->newer) {
        if (it->bytes > most->bytes)
            most = it;
    }
    return (struct jupyter_hub *)most;
}

void jupyter_keep(struct jupyter_hub *h, struct jupyter_out *m) {
    struct kept *account = account_of(h);
    size_t size = jupyter_out_size(m);
    while (account && h->kept && kept_room(account, h->kept_bytes, size) < size)
        forget_oldest(h);
    if (!account || kept_room(account, h->kept_bytes, size) < size) {
        jupyter_out_free(m);
        return;
    }
    *h->kept_end = m;
    h->kept_end = &m->next;
    h->kept_bytes += size;
    count_kept(h);
    while (h->kept_bytes > KEPT_MAX)
        forget_oldest(h);
    while (h->away.share->bytes > KEPT_MOST)
        forget_oldest(keeps_most(h->away.share));
}

void jupyter_publish(struct jupyter_hub *h, struct jupyter_out *m) {
    h->last_activity = jupyter_now();
    if (!h->clients && h->keeps)
        jupyter_keep(h, m);
    else
        jupyter_post(h, m);
}

void jupyter_answer(struct jupyter_request *r, struct jupyter_out *m) {
    struct jupyter_hub *h = r->hub;
    struct jupyter_client *c = r->client;
    for (struct jupyter_client *at = h->clients; !c && at; at = at->next)
        c = strcmp(at->session, r->session) == 0 ? at : NULL;
    if (!c && h->keeps && strcmp(h->kept_for, r->session) == 0) {
        jupyter_keep(h, m);
        return;
    }
    if (!c || !c->hub) { /* it was cut off while it was answered */
        jupyter_out_free(m);
        return;
    }
    m->to = c;
    jupyter_post(h, m);
}

void jupyter_say(struct jupyter_hub *h, const char *type, const char *parent, const char *content) {
    struct jupyter_out *m = jupyter_out(h, "iopub", type, parent);
    buf_adds(&m->content, content);
    jupyter_publish(h, m);
}

void jupyter_reply(struct jupyter_request *r, const char *content) {
    if (!r->reply)
        return;
    struct jupyter_out *m = jupyter_out(r->hub, r->channel, r->reply, r->parent);
    buf_adds(&m->content, content);
    jupyter_answer(r, m);
}

void jupyter_state(struct jupyter_hub *h, const char *parent, const char *state) {
    struct jupyter_out *m = jupyter_out(h, "iopub", "status", parent);
    struct jw j = JW_INIT(&m->content);
    jw_object(&j);
    jw_key_str(&j, "execution_state", state);
    jw_object_end(&j);
    jupyter_publish(h, m);
}

/* ---- clients ---- */

/* A kernel with clients is in use, and so is its sandbox. */
static void hub_hold(struct jupyter_hub *h, bool on) {
    struct err e;
    struct live *l = live_find(h->api->o.engine, h->tenant, h->sandbox, &e);
    if (l && on && !h->holds)
        live_hold(l);
    else if (l && !on && h->holds)
        live_release(l);
    h->holds = on;
}

static void forget_kept(struct jupyter_hub *h) {
    while (h->kept)
        jupyter_out_free(take_oldest(h));
    count_kept(h);
    h->keeps = false;
}

void jupyter_join(struct jupyter_hub *h, struct jupyter_client *c) {
    bool comes_back = h->keeps && strcmp(h->kept_for, c->session) == 0;
    c->hub = h;
    c->next = h->clients;
    h->clients = c;
    while (comes_back && h->kept) {
        struct jupyter_out *m = take_oldest(h);
        m->to = c;
        jupyter_post(h, m);
    }
    forget_kept(h);
    hub_hold(h, true);
}

static void forget_client(struct jupyter_request *list, const struct jupyter_client *c) {
    for (struct jupyter_request *r = list; r; r = r->next) {
        if (r->client == c)
            r->client = NULL;
    }
}

void jupyter_leave(struct jupyter_client *c) {
    struct jupyter_hub *h = c->hub;
    if (!h)
        return;
    c->hub = NULL;
    jupyter_post_leave(h, c);
    bool ran = !h->gone && h->running && h->running->client == c;
    forget_client(h->running, c);
    forget_client(h->queue, c);
    forget_client(h->asked, c);
    if (ran)
        jupyter_unhold(h);
    h->last_activity = jupyter_now();
    if (h->clients || h->gone)
        return;
    h->keeps = true;
    memcpy(h->kept_for, c->session, sizeof h->kept_for);
    hub_hold(h, false);
}

/* ---- its end ---- */

void jupyter_restart(struct jupyter_hub *h, kernel_ready_fn *fn, void *arg) {
    h->expected = true;
    jupyter_abort(h);
    jupyter_say(h, "shutdown_reply", NULL, "{\"status\":\"ok\",\"restart\":true}");
    kernel_restart(jupyter_kernel(h), fn, arg);
}

void jupyter_end(struct jupyter_hub *h) {
    struct kernel *k = jupyter_kernel(h);
    struct err e;
    if (!k)
        return;
    if (kernel_is_default(k)) /* its sandbox is its own */
        live_end(kernel_live(k), "its kernel was deleted", NULL, NULL);
    else
        kernel_delete(k, &e);
}

/* Nobody runs anything and nobody is connected. */
static bool is_idle(const struct jupyter_hub *h) {
    return !h->clients && !h->running && !h->queue;
}

static void on_cull(struct timer *t) {
    struct jupyter_hub *h = t->arg;
    double limit = h->api->config->jupyter.cull_s, idle = jupyter_now() - h->last_activity;
    if (limit == 0 || h->gone)
        return;
    if (is_idle(h) && idle >= limit) {
        jupyter_end(h);
        return;
    }
    double wait = is_idle(h) && idle > 0 ? limit - idle : limit;
    loop_timer_in_ms(h->api->o.loop, t, (uint64_t)(wait * 1e3) + 1);
}

static void free_hub(struct jupyter_hub *h) {
    struct jupyter *j = dialect_state(h->api, &jupyter_dialect);
    LIST_REMOVE(&j->hubs, h, next);
    loop_timer_stop(h->api->o.loop, &h->cull);
    jupyter_run_done(h);
    jupyter_post_done(h);
    forget_kept(h);
    shares_remove(&j->away, &h->away);
    jupyter_label_done(h);
    free(h);
}

static void hub_on_later(struct deferred *d) {
    struct jupyter_hub *h = d->arg;
    if (!h->gone)
        jupyter_go_on(h);
    else if (jupyter_post_is_over(h))
        free_hub(h);
}

static void hub_on_gone(struct jupyter_hub *h) {
    hub_hold(h, false);
    h->gone = true;
    forget_kept(h); /* while its sandbox can be told */
    jupyter_post_end(h);
}

static void on_news(struct kernel_watcher *w, enum kernel_news news) {
    struct jupyter_hub *h = w->arg;
    if (news == KERNEL_DIED) {
        jupyter_abort(h);
        if (!h->expected) /* JupyterLab says to its user that the kernel died */
            jupyter_state(h, NULL, "restarting");
    } else if (news == KERNEL_BACK) {
        h->expected = false;
        jupyter_state(h, NULL, "starting");
        jupyter_state(h, NULL, "idle");
    } else if (news == KERNEL_DEAD) {
        jupyter_state(h, NULL, "dead");
    } else {
        hub_on_gone(h);
    }
}
