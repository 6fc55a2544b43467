/* See route.h. */

#include "api/core/route.h"

#include "api/core/call.h"
#include "api/core/dialect.h"
#include "api/core/doors.h"
#include "base/fd.h"

#include <stdlib.h>
#include <string.h>

void routes_add(struct route_list *l, const struct route_table *const *tables,
                const struct dialect *of) {
    for (; *tables; tables++) {
        l->items = xrealloc(l->items, (l->n + (*tables)->n) * sizeof *l->items);
        for (size_t i = 0; i < (*tables)->n; i++)
            l->items[l->n++] = (struct route_entry){&(*tables)->routes[i], of};
    }
}

/* ---- paths ---- */

/* Whether the pattern goes on with a last "{name...}", which is the rest of the path: or nothing at
 * all, then without the slash before it too. */
static bool takes_rest(struct call *c, const char *pattern, char *at, unsigned n) {
    if (*pattern == '/' && *at == '\0')
        pattern++;
    const char *dots = *pattern == '{' ? strstr(pattern, "...}") : NULL;
    if (!dots || strchr(pattern, '}') < dots || n == CALL_PARAMS)
        return false;
    c->params[n] = at;
    return true;
}

/* Whether the path is of the pattern's form; its {…} are cut out of path_copy. */
static bool matches(struct call *c, const char *pattern) {
    char *at = c->path_copy;
    unsigned n = 0;
    memcpy(at, http_path(c->req), strlen(http_path(c->req)) + 1);
    for (; *pattern; pattern++) {
        if (takes_rest(c, pattern, at, n))
            return true;
        if (*pattern != '{') {
            if (*at++ != *pattern)
                return false;
            continue;
        }
        pattern = strchr(pattern, '}');
        size_t len = strcspn(at, "/");
        if (len == 0 || n == CALL_PARAMS)
            return false;
        c->params[n++] = at;
        bool last = at[len] == '\0';
        at[len] = '\0';
        at += len + !last;
        if (!last && *++pattern != '/')
            return false;
        if (last)
            return pattern[1] == '\0';
    }
    return *at == '\0';
}

static bool method_is(const struct call *c, const struct route *r) {
    const char *m = http_method(c->req);
    return strcmp(m, r->doc.method) == 0 || strcmp(r->doc.method, "*") == 0 ||
           (strcmp(m, "HEAD") == 0 && strcmp(r->doc.method, "GET") == 0);
}

/* SECURITY: what is not about one sandbox is not there at a sandbox's own port. */
static bool is_here(const struct call *c, const struct route_entry *e) {
    return !call_at_door(c) || e->route->at_doors || (e->dialect && e->dialect->at_doors);
}

/* ---- no route ---- */

/* A dialect refuses in its own words even paths that no route has. */
static void find_shape(struct call *c) {
    for (unsigned i = 0; i < c->api->nspeakers; i++) {
        const struct speaker *s = &c->api->speakers[i];
        if (call_at_door(c) && !s->dialect->at_doors)
            continue;
        if (s->rank && s->dialect->unknown && matches(c, s->dialect->unknown->doc.path)) {
            c->route = s->dialect->unknown;
            c->dialect = s->dialect;
        }
    }
}

static void no_route(struct call *c, const char *allow) {
    struct problem p;
    problem_set(&p, "no_route", "there is nothing at this path");
    p.detail = "Not Found";
    if (*allow) {
        http_add_header(c->req, "Allow", allow);
        problem_set(&p, "bad_method", "this path does not take that method");
        p.detail = "Method Not Allowed";
    }
    find_shape(c);
    call_problem(c, &p);
}

static void redirect(struct call *c, const char *path) {
    const char *query = http_raw_query(c->req);
    AUTO_BUF to = BUF_INIT;
    buf_addf(&to, "%s%s%s", path, query ? "?" : "", query ? query : "");
    http_add_header(c->req, "Location", to.data);
    http_reply(c->req, 307, NULL, "", 0);
}

/* As FastAPI does: from a path with a slash at its end to the same without it, if there is one. */
static bool redirected(struct call *c) {
    const struct route_list *all = &c->api->routes;
    size_t len = strlen(http_path(c->req));
    if (len < 2 || http_path(c->req)[len - 1] != '/')
        return false;
    AUTO_FREE char *shorter = xstrndup(http_path(c->req), len - 1);
    for (size_t i = 0; i < all->n; i++) {
        if (is_here(c, &all->items[i]) && strcmp(all->items[i].route->doc.path, shorter) == 0 &&
            shorter[1] != '/') {
            redirect(c, shorter);
            return true;
        }
    }
    return false;
}

/* A host of its own has one route for all paths. */
static bool find_site(struct call *c) {
    const struct route_list *all = &c->api->routes;
    for (size_t i = 0; i < all->n; i++)
        if (all->items[i].route->at_sites)
            c->route = all->items[i].route;
    return c->route != NULL;
}

bool route_find(struct call *c) {
    const struct route_list *all = &c->api->routes;
    if (c->site.is)
        return find_site(c);
    AUTO_BUF allow = BUF_INIT;
    for (size_t i = 0; i < all->n; i++) {
        const struct route *r = all->items[i].route;
        if (!is_here(c, &all->items[i]) || !matches(c, r->doc.path))
            continue;
        if (method_is(c, r)) {
            c->route = r;
            c->dialect = all->items[i].dialect;
            return true;
        }
        buf_addf(&allow, "%s%s%s", allow.len ? ", " : "", r->doc.method,
                 strcmp(r->doc.method, "GET") == 0 ? ", HEAD" : "");
    }
    if (allow.len || !redirected(c))
        no_route(c, allow.data);
    return false;
}
