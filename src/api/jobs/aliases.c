/* See aliases.h. One that is being made has an entry in the API's list, with all the requests that
 * wait for it; when it is ready it is found by its alias among the live sandboxes. */

#include "api/jobs/aliases.h"

#include "api/jobs/live_requests.h"
#include "base/fd.h"
#include "base/list.h"

#include <stdlib.h>
#include <string.h>

struct alias {
    struct alias *next;
    struct api *api;
    char *tenant, *alias; /* owned */
    struct alias_seeker *first, **at_end;
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

static struct alias *find_entry(const struct caller *who, const char *dialect, const char *name) {
    AUTO_FREE char *alias = alias_of(dialect, name);
    struct alias *m = who->api->aliases;
    while (m && (strcmp(m->alias, alias) != 0 || strcmp(m->tenant, who->tenant) != 0))
        m = m->next;
    return m;
}

bool alias_is_taken(const struct call *c, const char *dialect, const char *name) {
    return alias_find(c->api->o.engine, c->who.tenant, dialect, name) ||
           find_entry(&c->who, dialect, name);
}

/* ---- those who wait ---- */

static void alias_wait_for(struct alias *m, struct alias_seeker *s) {
    s->of = m;
    s->next = NULL;
    *m->at_end = s;
    m->at_end = &s->next;
}

void alias_leave(struct alias_seeker *s) {
    struct alias *m = s->of;
    if (!m)
        return;
    LIST_REMOVE(&m->first, s, next);
    m->at_end = LIST_END(&m->first, next);
    s->of = NULL;
}

static struct alias *add_entry(const struct caller *who, const char *dialect, const char *name) {
    struct alias *m = xcalloc(1, sizeof *m);
    m->api = who->api;
    m->tenant = xstrdup(who->tenant);
    m->alias = alias_of(dialect, name);
    m->at_end = &m->first;
    m->next = who->api->aliases;
    who->api->aliases = m;
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

/* `id` is that of the sandbox, or NULL and `p` says why there is none. */
static void alias_over(struct alias *m, const char *id, const struct problem *p) {
    unlink_entry(m); /* they may ask again at once */
    while (m->first) {
        struct live *l = still_there(m, id);
        struct alias_seeker *s = LIST_POP(&m->first, next);
        m->at_end = m->first ? m->at_end : &m->first;
        s->of = NULL;
        s->then(s, l, l ? NULL : p);
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

static void alias_make(struct alias *m, const struct alias_wanted *w) {
    struct live_request q = live_request_for(w->who);
    struct live *l;
    struct problem p = {0};
    struct err e;
    q.alias = xstrdup(m->alias);
    if (w->fill(w->arg, &q, &p) < 0) {
        alias_over(m, NULL, &p);
    } else {
        if (!q.metadata)
            q.metadata = xstrdup("{}");
        if (live_new(w->who->api->o.engine, &q, alias_on_ready, m, &l, &e) < 0) {
            p = problem_of(&e);
            alias_over(m, NULL, &p);
        }
    }
    live_request_done(&q); /* empty when it was taken */
}

bool alias_seek(struct alias_seeker *s, const struct alias_wanted *w) {
    struct live *l = alias_find(w->who->api->o.engine, w->who->tenant, w->dialect, w->name);
    struct alias *m = l ? NULL : find_entry(w->who, w->dialect, w->name);
    bool makes = !l && !m && w->fill;
    s->of = NULL;
    if (makes)
        m = add_entry(w->who, w->dialect, w->name);
    if (m)
        alias_wait_for(m, s);
    else
        s->then(s, l, NULL);
    if (makes)
        alias_make(m, w);
    return makes;
}

/* ---- for calls ---- */

struct waiter {
    struct alias_seeker seeker;
    struct call *call;
    alias_fill *fill; /* or NULL */
    alias_fn *then;
};

static void waiter_leave(void *state) {
    struct waiter *w = state;
    alias_leave(&w->seeker);
    free(w);
}

static void waiter_then(struct alias_seeker *s, struct live *l, const struct problem *why) {
    const struct waiter w = *(struct waiter *)s;
    struct call *c = w.call;
    c->state = NULL;
    c->state_done = NULL;
    free(s);
    if (l || !w.fill)
        w.then(c, l);
    else
        call_problem(c, why);
}

static int waiter_fill(void *arg, struct live_request *q, struct problem *p) {
    const struct waiter *w = arg;
    return w->fill(w->call, q, p);
}

static void seek_for(struct call *c, const char *dialect, const char *name, alias_fill *fill,
                     alias_fn *then) {
    struct waiter *w = xcalloc(1, sizeof *w);
    *w = (struct waiter){.seeker = {.then = waiter_then}, .call = c, .fill = fill, .then = then};
    c->state = w;
    c->state_done = waiter_leave;
    alias_seek(&w->seeker, &(struct alias_wanted){.who = &c->who,
                                                  .dialect = dialect,
                                                  .name = name,
                                                  .fill = fill ? waiter_fill : NULL,
                                                  .arg = w});
}

static bool is_good(struct call *c, const char *name) {
    if (*name && strlen(name) <= ALIAS_MAX)
        return true;
    call_bad_value(c, "choose another name", "the name has no or more than 200 bytes");
    return false;
}

void alias_use(struct call *c, const char *dialect, const char *name, alias_fill *fill,
               alias_fn *then) {
    if (is_good(c, name))
        seek_for(c, dialect, name, fill, then);
}

void alias_when(struct call *c, const char *dialect, const char *name, alias_fn *then) {
    seek_for(c, dialect, name, NULL, then);
}
