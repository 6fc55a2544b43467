/* See live_admit.h. */

#include "engine/live/live_admit.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"
#include "engine/core/admit.h"
#include "engine/core/bounds.h"
#include "engine/core/engine.h"
#include "engine/live/lives.h"
#include "engine/process/live_state.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static unsigned count_words(const char *text) {
    unsigned n = 0;
    for (; *text; text++)
        n += *text != ' ' && (text[1] == ' ' || text[1] == '\0');
    return n;
}

/* auto: the one that has the most in it. */
static const char *choose_auto(struct engine *g) {
    const char *best = NULL;
    unsigned most = 0;
    for (unsigned i = 0; i < g->config.nprofiles; i++) {
        const struct profile_pool *p = &g->pools[i];
        const struct profile_pool *twin = pool_live(g, p->config->name);
        unsigned n = count_words(p->modules) + 1;
        if (twin && twin->state != PROFILE_BROKEN && n > most) {
            most = n;
            best = p->config->name;
        }
    }
    return best;
}

static bool is_named(const struct engine *g, const char *name) {
    unsigned i = 0;
    while (i < g->config.nprofiles && strcmp(g->config.profiles[i].name, name) != 0)
        i++;
    return i < g->config.nprofiles && !g->config.profiles[i].live && !g->config.profiles[i].removed;
}

static int choose_pool(struct engine *g, const struct live_request *q, struct profile_pool **ret,
                       struct err *e) {
    bool is_auto = !q->profile || !*q->profile || strcmp(q->profile, "auto") == 0;
    const char *name = is_auto ? choose_auto(g) : q->profile;
    if (q->tree)
        name = q->tree->profile;
    struct profile_pool *p = name ? pool_live(g, name) : NULL;
    *ret = p;
    if (!p && (is_auto || is_named(g, name)))
        return err_user(e, "profile_broken",
                        "live sandboxes are switched off, or have no profile "
                        "that works (setting live)");
    if (!p)
        return err_user(e, "unknown_profile", "there is no profile \"%.40s\" for live sandboxes",
                        name);
    if (p->state == PROFILE_BROKEN)
        return err_user(e, "profile_broken", "profile %s cannot be live: %.300s", name, p->what);
    return q->tree ? tree_check(q->tree, p, e) : 0;
}

/* Those of the request win. */
static int live_add_env(struct live_request *q, const struct tree *t, struct err *e) {
    const struct config_list *env = &t->env;
    json_auto_t *all = NULL;
    if (!env->n)
        return 0;
    if (!q->env)
        all = json_object();
    else if (json_read(q->env, strlen(q->env), 2, &all, e) < 0)
        return -1;
    for (unsigned k = 0; k < env->n; k++) {
        const char *pair = env->items[k], *value = strchr(pair, '=');
        AUTO_FREE char *name = xstrndup(pair, value ? (size_t)(value - pair) : 0);
        if (value && !json_object_get(all, name))
            json_object_set_new(all, name, json_string(value + 1));
    }
    free(q->env);
    q->env = json_dumps(all, JSON_COMPACT);
    if (q->env && strlen(q->env) <= LIVE_ENV_MAX)
        return 0;
    return err_user(e, "bad_value",
                    "env has more than %u bytes as JSON together with that of profile %s",
                    LIVE_ENV_MAX, t->name);
}

int live_settle_time(struct engine *g, struct live_request *q, struct err *e) {
    uint32_t most = g->config.live_ttl_max_s;
    if (q->ttl_s == 0)
        q->ttl_s = g->config.live_ttl_s;
    if (q->idle_s == 0)
        q->idle_s = g->config.live_idle_s;
    if (most && q->ttl_s > most && !q->own_bounds)
        return err_user(e, "limit_too_high",
                        "ttl_seconds of %u is above this engine's maximum of %u", q->ttl_s, most);
    return 0;
}

static int check_quota(struct engine *g, const struct live_request *q, struct err *e) {
    unsigned n = 0, own = q->most_of_tenant, all = g->config.live_per_tenant;
    unsigned most = own && all ? (own < all ? own : all) : own + all;
    for (const struct live *l = g->lives->first; l; l = l->next)
        n += strcmp(l->req.tenant, q->tenant) == 0;
    if (most && n >= most)
        return err_user(e, "too_many_sandboxes",
                        "%u live sandboxes are there already, which is "
                        "as many as may be",
                        n);
    return 0;
}

static int live_check(struct admission *a, struct err *e) {
    struct live_request *q = a->arg;
    struct engine *g = a->pool->engine;
    return check_quota(g, q, e) < 0 ? -1 : live_settle_time(g, q, e);
}

int live_admit(struct engine *g, struct live_request *q, struct profile_pool **ret,
               uint64_t *ret_files, struct err *e) {
    q->tree = q->profile ? tree_use(trees_find(g, q->tenant, q->profile)) : NULL;
    if (choose_pool(g, q, ret, e) < 0 || (q->tree && live_add_env(q, q->tree, e) < 0))
        return -1;
    struct limits usual = config_born(&g->config, (*ret)->config);
    if (q->tree) /* held against the maxima, as what is asked for */
        q->limits = limits_over(&q->tree->limits, &q->limits);
    struct admission a = {.pool = *ret,
                          .tenant = q->tenant,
                          .defaults = &usual,
                          .maxima = g->config.maxima,
                          .limits = &q->limits,
                          .inputs = q->inputs,
                          .ninputs = q->ninputs,
                          .check = live_check,
                          .arg = q};
    if (admit(&a, e) < 0)
        return -1;
    *ret_files = a.files_bytes;
    return 0;
}
