/* See aliases.h. One that is being made has an entry in the API's list, with all the requests that
 * wait for it; when it is ready it is found by its alias among the live sandboxes. */

#include "api/jobs/aliases.h"

#include "api/jobs/live_requests.h"
#include "base/fd.h"
#include "base/list.h"

#include <stdlib.h>
#include <string.h>

struct waiter {
    struct waiter *next;
    struct call *call; /* NULL: whoever asked is gone */
    alias_fn *then;
    bool needs_it; /* then() takes no NULL */
};

struct alias {
    struct alias *next;
    struct api *api;
    char *tenant, *alias;             /* owned */
    struct waiter *waiters, **at_end; /* owned */
};

/* ---- names ---- */

const char *alias_name(const struct live *l, const char *dialect) {
    const char *alias = live_alias(l);
    size_t n = strlen(dialect);
    return alias && strncmp(alias, dialect, n) == 0 && alias[n] == '/' ? alias + n + 1 : NULL;
}

struct live *alias_find(struct engine *g, const char *tenant, const char *dialect,
                        const char *name) {
    for (struct live *l = live_next(g, tenant, NULL); l; l = live_next(g, tenant, l)) {
        const char *known = alias_name(l, dialect);
        if (known && strcmp(known, name) == 0)
            return l;
    }
    return NULL;
}

static char *alias_of(const char *dialect, const char *name) {
    struct buf b = BUF_INIT;
    buf_addf(&b, "%s/%s", dialect, name);
    return buf_take(&b);
}

static struct alias *find_entry(const struct call *c, const char *dialect, const char *name) {
    AUTO_FREE char *alias = alias_of(dialect, name);
    struct alias *m = c->api->aliases;
    while (m && (strcmp(m->alias, alias) != 0 || strcmp(m->tenant, c->who.tenant) != 0))
        m = m->next;
    return m;
}

bool alias_is_taken(const struct call *c, const char *dialect, const char *name) {
    return alias_find(c->api->o.engine, c->who.tenant, dialect, name) ||
           find_entry(c, dialect, name);
}

/* ---- those who wait ---- */

static void alias_leave(void *state) {
    struct waiter *w = state;
    w->call = NULL;
}

static void alias_wait_for(struct alias *m, struct call *c, alias_fn *then, bool needs_it) {
    struct waiter *w = xcalloc(1, sizeof *w);
    w->call = c;
    w->then = then;
    w->needs_it = needs_it;
    *m->at_end = w;
    m->at_end = &w->next;
    c->state = w;
    c->state_done = alias_leave;
}

static struct alias *add_entry(struct call *c, const char *dialect, const char *name) {
    struct alias *m = xcalloc(1, sizeof *m);
    m->api = c->api;
    m->tenant = xstrdup(c->who.tenant);
    m->alias = alias_of(dialect, name);
    m->at_end = &m->waiters;
    m->next = c->api->aliases;
    c->api->aliases = m;
    return m;
}

static void unlink_entry(struct alias *m) {
    LIST_REMOVE(&m->api->aliases, m, next);
}

/* An earlier one may have ended it. */
static struct live *still_there(const struct alias *m, const char *id) {
    struct err e;
    return id ? live_find(m->api->o.engine, m->tenant, id, &e) : NULL;
}

static void alias_tell(const struct alias *m, struct waiter *w, const char *id,
                       const struct problem *p) {
    struct call *c = w->call;
    if (!c)
        return;
    struct live *l = still_there(m, id);
    c->state = NULL;
    c->state_done = NULL;
    if (l || !w->needs_it)
        w->then(c, l);
    else
        call_problem(c, p);
}

/* `id` is that of the sandbox, or NULL and `p` says why there is none. */
static void alias_over(struct alias *m, const char *id, const struct problem *p) {
    unlink_entry(m); /* they may ask again at once */
    while (m->waiters) {
        struct waiter *w = m->waiters;
        m->waiters = w->next;
        alias_tell(m, w, id, p);
        free(w);
    }
    free(m->tenant);
    free(m->alias);
    free(m);
}

static void alias_on_ready(void *arg, struct live *l, const struct err *why) {
    struct err gone;
    err_user(&gone, "sandbox_gone", "the sandbox is gone: another request ended it");
    struct problem p = problem_of(why ? why : &gone);
    alias_over(arg, why ? NULL : live_id(l), &p);
}

static void alias_make(struct alias *m, struct call *c, alias_fill *fill) {
    struct live_request q = live_request_for(&c->who);
    struct live *l;
    struct problem p = {0};
    struct err e;
    q.alias = xstrdup(m->alias);
    if (fill(c, &q, &p) < 0) {
        alias_over(m, NULL, &p);
    } else {
        if (!q.metadata)
            q.metadata = xstrdup("{}");
        if (live_new(c->api->o.engine, &q, alias_on_ready, m, &l, &e) < 0) {
            p = problem_of(&e);
            alias_over(m, NULL, &p);
        }
    }
    live_request_done(&q); /* empty when it was taken */
}

/* ---- used ---- */

static bool is_good(struct call *c, const char *name) {
    if (*name && strlen(name) <= ALIAS_MAX)
        return true;
    call_bad_value(c, "choose another name", "the name has no or more than 200 bytes");
    return false;
}

void alias_use(struct call *c, const char *dialect, const char *name, alias_fill *fill,
               alias_fn *then) {
    if (!is_good(c, name))
        return;
    struct live *l = alias_find(c->api->o.engine, c->who.tenant, dialect, name);
    struct alias *m = l ? NULL : find_entry(c, dialect, name);
    if (l) {
        then(c, l);
    } else if (m) {
        alias_wait_for(m, c, then, true);
    } else {
        m = add_entry(c, dialect, name);
        alias_wait_for(m, c, then, true);
        alias_make(m, c, fill);
    }
}

void alias_when(struct call *c, const char *dialect, const char *name, alias_fn *then) {
    struct live *l = alias_find(c->api->o.engine, c->who.tenant, dialect, name);
    struct alias *m = l ? NULL : find_entry(c, dialect, name);
    if (m)
        alias_wait_for(m, c, then, false);
    else
        then(c, l);
}
