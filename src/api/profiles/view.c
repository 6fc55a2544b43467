/* See view.h. */

#include "api/profiles/view.h"

#include "api/profiles/own.h"
#include "base/fd.h"
#include "base/json.h"
#include "engine/core/about.h"
#include "engine/core/engine.h"

#include <stdlib.h>
#include <string.h>

static void put_modules(struct jw *j, const char *words) {
    jw_key(j, "modules");
    jw_array(j);
    while (*words) {
        size_t n = strcspn(words, " ");
        if (n)
            jw_strn(j, words, n);
        words += n + (words[n] == ' ');
    }
    jw_array_end(j);
}

static void put_env(struct jw *j, const struct config_list *env) {
    jw_key(j, "env");
    jw_object(j);
    for (unsigned k = 0; k < env->n; k++) {
        const char *pair = env->items[k], *value = strchr(pair, '=');
        AUTO_FREE char *name = xstrndup(pair, value ? (size_t)(value - pair) : 0);
        jw_key_str(j, name, value ? value + 1 : "");
    }
    jw_object_end(j);
}

static const struct field profile_fields[] = {
    HAS("name", FIELD_STRING),
    HAS("state", FIELD_STRING, WORDS("starting", "ready", "broken", "restarting", "building")),
    HAS_OR_NULL("version", FIELD_STRING, .help = "of its Python"),
    HAS_OR_NULL("problem", FIELD_STRING),
    HAS("modules", FIELD_LIST),
    HAS("ready_sandboxes", FIELD_INT),
    HAS("env", FIELD_MAP, .help = "variables of all its programs"),
    HAS("limits", OBJECT(about_limits_schema), .help = "of a program that asks for nothing"),
    HAS("live_limits", OBJECT(about_limits_schema), .help = "the same of a live sandbox"),
    ABOUT_LIVE_FIELDS,
    OWN_FIELDS,
};
const struct schema profile_schema = {SCHEMA("Profile", profile_fields)};

void profile_put(const struct engine *g, unsigned i, struct buf *to) {
    static const char *const states[] = {"starting", "ready", "broken", "restarting"};
    const struct profile_pool *p = &g->pools[i];
    bool ready = p->state == PROFILE_READY;
    struct jw j = JW_INIT(to);
    jw_object(&j);
    jw_key_str(&j, "name", p->config->name);
    jw_key_str(&j, "state", states[p->state]);
    jw_key_str(&j, "version", ready ? p->what : NULL);
    jw_key_str(&j, "problem", p->state == PROFILE_BROKEN ? p->what : NULL);
    put_modules(&j, p->modules);
    jw_key_uint(&j, "ready_sandboxes", p->nready);
    put_env(&j, &p->config->env);
    struct limits usual = limits_over(&g->config.defaults, &p->config->limits);
    struct limits live = limits_over(&g->config.live, &p->config->limits);
    about_put_limits(&j, "limits", &usual, LIMIT_OF_ANY);
    about_put_limits(&j, "live_limits", &live, LIMIT_OF_ANY);
    about_put_live(&j, g, i);
    jw_object_end(&j);
}

/* Its limits over those of the profile that it is made from. */
static void put_own_limits(struct jw *j, const struct engine *g, const struct tree *t,
                           const struct limits *base) {
    static const struct limits none = {0};
    const struct limits *own = t ? &t->limits : &none;
    struct limits usual = limits_over(&g->config.defaults, base);
    struct limits live = limits_over(&g->config.live, base);
    usual = limits_over(&usual, own);
    live = limits_over(&live, own);
    about_put_limits(j, "limits", &usual, LIMIT_OF_ANY);
    about_put_limits(j, "live_limits", &live, LIMIT_OF_ANY);
}

static void put_own_live(struct jw *j, const struct engine *g, const struct own_profile *p,
                         unsigned base) {
    if (base < g->config.nprofiles && p->state == OWN_READY) {
        about_put_live(j, g, base);
        return;
    }
    jw_key_str(j, "live", p->state == OWN_BUILDING ? "starting" : "broken");
    jw_key_str(j, "live_what", p->state == OWN_BUILDING ? NULL : "the profile is broken");
}

void profile_put_own(const struct own_profile *p, bool in_list, struct buf *to) {
    static const char *const states[] = {"building", "ready", "broken"};
    static const struct config_profile nothing = {0};
    const struct engine *g = p->all->api->o.engine;
    unsigned base = own_base(p);
    bool is_there = base < g->config.nprofiles;
    const struct config_profile *from = is_there ? &g->config.profiles[base] : &nothing;
    AUTO_BUF why = BUF_INIT;
    struct err e;
    if (p->state == OWN_BROKEN)
        buf_adds(&why, p->why);
    else if (!is_there)
        buf_adds(&why, "the profile that it was made from is gone");
    else if (p->tree && tree_check(p->tree, &g->pools[base], &e) < 0)
        buf_adds(&why, e.text);
    struct jw j = JW_INIT(to);
    jw_object(&j);
    jw_key_str(&j, "name", p->name);
    jw_key_str(&j, "state", why.len ? "broken" : states[p->state]);
    jw_key_str(&j, "version", json_string_value(json_object_get(p->about, "version")));
    jw_key_str(&j, "problem", why.len ? why.data : NULL);
    put_modules(&j, is_there ? g->pools[base].modules : "");
    jw_key_uint(&j, "ready_sandboxes", is_there ? g->pools[base].nready : 0);
    jw_key(&j, "env");
    jw_json(&j, json_object_get(p->about, "env"), "{}");
    put_own_limits(&j, g, p->tree, &from->limits);
    put_own_live(&j, g, p, base);
    own_put(&j, p, in_list);
    jw_object_end(&j);
}
