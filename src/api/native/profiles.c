/* /v1/profiles: those of the operator, and those that a tenant makes for itself. */

#include "api/core/pages.h"
#include "api/jobs/events.h"
#include "api/jobs/limit_fields.h"
#include "api/jobs/records.h"
#include "api/jobs/request_fields.h"
#include "api/native/native.h"
#include "api/profiles/build.h"
#include "api/profiles/own.h"
#include "api/profiles/requirement.h"
#include "api/profiles/view.h"
#include "base/clock.h"
#include "base/log.h"
#include "config/profile_read.h"

#include <string.h>

#define REQUIREMENTS_MAX 500
#define ENV_MAX          64
#define ENV_BYTES        16384u /* of all: it comes on top of what a request has */

/* ---- looked at ---- */

static const struct field profiles_fields[] = {
    HAS("profiles", LIST_OF(profile_schema)),
    PAGE_NEXT,
};
static const struct schema profiles_schema = {SCHEMA("ProfileList", profiles_fields)};

/* A tenant's own comes before the operator's of the same name, as where it is asked for. */
static void do_profiles(struct call *c) {
    const struct engine *g = c->api->o.engine;
    struct page_walk w;
    if (!page_walk(c, "profiles", &w))
        return;
    for (unsigned i = 0; i < g->config.nprofiles; i++) {
        const struct config_profile *p = g->pools[i].config;
        bool hidden = p->removed || p->live || own_find(c->api, c->who.tenant, p->name);
        struct buf *to = hidden ? NULL : page_place(&w, p->name);
        if (to)
            profile_put(g, i, to);
    }
    for (struct own_profile *p = NULL; (p = own_next(c->api, c->who.tenant, p));) {
        struct buf *to = page_place(&w, p->name);
        if (to)
            profile_put_own(p, true, to);
    }
    page_reply(c, &w);
}

/* The operator's of that name; nprofiles: there is none. */
static unsigned find_named(const struct engine *g, const char *name) {
    unsigned i = 0;
    while (i < g->config.nprofiles &&
           (g->config.profiles[i].removed || g->config.profiles[i].live ||
            strcmp(g->config.profiles[i].name, name) != 0))
        i++;
    return i;
}

static void profiles_refuse_unknown(struct call *c) {
    char quoted[80];
    call_refuse(c, "no_such_profile", "there is no profile %s",
                log_quote(c->params[0], quoted, sizeof quoted));
}

static void do_profile(struct call *c) {
    const struct engine *g = c->api->o.engine;
    const struct own_profile *own = own_find(c->api, c->who.tenant, c->params[0]);
    unsigned i = find_named(g, c->params[0]);
    AUTO_BUF json = BUF_INIT;
    if (own)
        profile_put_own(own, false, &json);
    else if (i < g->config.nprofiles)
        profile_put(g, i, &json);
    else {
        profiles_refuse_unknown(c);
        return;
    }
    call_json(c, 200, &json);
}

static void do_profile_events(struct call *c) {
    const struct own_profile *p = own_find(c->api, c->who.tenant, c->params[0]);
    if (!p) {
        profiles_refuse_unknown(c);
        return;
    }
    struct record *rec =
        p->record[0] ? records_find(c->api->records, c->who.tenant, p->record) : NULL;
    enum events_form form = events_wanted(c);
    uint64_t after;
    if (!rec)
        call_refuse(c, "no_execution", "what was said when %s was built is forgotten", p->name);
    else if (events_after(c, &after))
        events_stream(c, rec, form == EVENTS_LINES ? form : EVENTS_SSE, after,
                      &(struct events_source){0});
}

/* ---- made ---- */

static const struct field make_fields[] = {
    {.name = "name",
     .type = FIELD_STRING,
     .flags = FIELD_REQUIRED,
     .help = "1 to 32 of a-z 0-9 _ -; not auto, and no profile of the operator's"},
    {.name = "requirements",
     .type = FIELD_LIST,
     .flags = FIELD_REQUIRED | FIELD_MAX,
     .max = REQUIREMENTS_MAX,
     .help = "packages, each as \"polars\" or \"rich>=13\"; no options, paths or addresses"},
    {.name = "from",
     .type = FIELD_STRING,
     .help = "the operator's profile that its sandboxes are of; the first unless given"},
    {.name = "env",
     .type = FIELD_MAP,
     .flags = FIELD_MAX,
     .max = ENV_MAX,
     .help = "variables of all its programs, where they have none of that name"},
    FIELD_OF_LIMITS("what its programs and sandboxes get that ask for nothing"),
};
static const struct schema make_schema = {SCHEMA("ProfileRequest", make_fields)};

static bool may_change(struct call *c) {
    if (c->api->config->http.tenant_profiles == 0)
        call_refuse(c, "profiles_off", "tenants make no profiles on this server");
    else if (!(c->who.rights & KEY_PROFILES))
        call_refuse(c, "no_right", "this key may not make or remove profiles");
    else
        return true;
    return false;
}

static int names_operators(const char *name, struct problem *p) {
    problem_set(p, "profile_exists", "profile %s is one of the operator's", name);
    p->remediation = "choose another name";
    return -1;
}

static int read_name(const struct call *c, const char **ret, struct problem *p) {
    const char *name = field_str(c->body, "name", "");
    const struct own_profile *own = own_find(c->api, c->who.tenant, name);
    char quoted[80];
    *ret = name;
    if (!config_name_is_good(name) || strcmp(name, "auto") == 0)
        return problem_set(p, "bad_value",
                           "name is %s; it must be 1 to 32 of a-z 0-9 _ -, and not auto",
                           log_quote(name, quoted, sizeof quoted));
    if (find_named(c->api->o.engine, name) < c->api->o.engine->config.nprofiles)
        return names_operators(name, p);
    if (own && own->state == OWN_BUILDING)
        return problem_set(p, "profile_building", "profile %s is being built", name);
    if (own && own->state == OWN_READY)
        return problem_set(p, "profile_exists", "there is a profile %s already", name);
    return 0;
}

static int read_requirements(const json_t *body, json_t *to, struct problem *p) {
    const json_t *line;
    size_t i;
    json_array_foreach(json_object_get(body, "requirements"), i, line) {
        bool blank;
        const char *text = json_string_value(line);
        const char *why = requirement_fault(text, json_string_length(line), &blank);
        char quoted[120];
        if (why)
            return problem_set(p, "bad_value", "requirements[%zu]: %s %s", i,
                               log_quote(text, quoted, sizeof quoted), why);
        if (!blank)
            json_array_append_new(to, json_string(text));
    }
    if (json_array_size(to) == 0)
        return problem_set(p, "bad_value", "requirements: there is no package in them");
    return 0;
}

static int check_env(const json_t *env, struct problem *p) {
    const char *name;
    json_t *value;
    size_t all = 0;
    json_object_foreach((json_t *)env, name, value) {
        all += strlen(name) + 1 + json_string_length(value);
    }
    return all <= ENV_BYTES ? 0
                            : problem_set(p, "bad_value", "env has more than %u bytes", ENV_BYTES);
}

/* As the configuration file has it, and up to the maxima that programs have. */
static int check_definition(const struct call *c, const char *name, const json_t *about,
                            struct problem *p) {
    struct config scratch = {.nprofiles = 1};
    struct config_profile *said = &scratch.profiles[0];
    const struct limits *maxima = &c->api->config->maxima;
    json_auto_t *definition = json_object();
    struct err e;
    json_object_set(definition, "env", json_object_get(about, "env"));
    json_object_set(definition, "limits", json_object_get(about, "limits"));
    said->name = xstrdup(name);
    int rc = profile_read("the request", definition, said, &e);
    if (rc < 0)
        problem_set(p, "bad_value", "%s", e.text);
    for (size_t i = 0; i < LIMITS_ && rc == 0; i++) {
        uint64_t most = limits_value(maxima, i);
        if (most && limits_value(&said->limits, i) > most)
            rc = problem_set(p, "limit_too_high", "limits.%s is above this server's maximum",
                             limits_info[i].name);
    }
    config_done(&scratch);
    return rc;
}

static int read_from(const struct call *c, const char **ret, struct problem *p) {
    const struct engine *g = c->api->o.engine;
    const char *from = field_str(c->body, "from", NULL);
    unsigned i = 0;
    char quoted[80];
    while (!from && i < g->config.nprofiles &&
           (g->config.profiles[i].removed || g->config.profiles[i].live))
        i++;
    if (from)
        i = find_named(g, from);
    *ret = i < g->config.nprofiles ? g->config.profiles[i].name : NULL;
    if (*ret)
        return 0;
    return problem_set(p, "unknown_profile", "from: the operator has no profile %s",
                       log_quote(from ? from : "", quoted, sizeof quoted));
}

static int check_quota(const struct call *c, struct problem *p) {
    const struct config *cfg = c->api->config;
    uint64_t has = own_bytes(c->api, c->who.tenant);
    if (own_count(c->api, c->who.tenant) >= cfg->http.tenant_profiles)
        return problem_set(p, "too_many_profiles", "there are %u profiles of this tenant already",
                           own_count(c->api, c->who.tenant));
    if (has >= (uint64_t)cfg->http.tenant_profiles_mb << 20)
        return problem_set(p, "profiles_full",
                           "the profiles of this tenant take %llu MB; at most %u are allowed",
                           (unsigned long long)(has >> 20), cfg->http.tenant_profiles_mb);
    return 0;
}

static json_t *object_of(const json_t *body, const char *key) {
    json_t *v = json_object_get(body, key);
    return json_is_object(v) ? json_incref(v) : json_object();
}

/* What is to be kept of the request; NULL with a problem. */
static json_t *make_about(const struct call *c, const char *name, struct problem *p) {
    const char *from;
    json_auto_t *wanted = json_array();
    if (read_requirements(c->body, wanted, p) < 0 || read_from(c, &from, p) < 0 ||
        check_env(json_object_get(c->body, "env"), p) < 0)
        return NULL;
    json_t *about = json_pack("{s:s, s:s, s:s, s:s, s:f, s:O, s:o, s:o}", "tenant", c->who.tenant,
                              "name", name, "from", from, "key", c->who.key, "created",
                              (double)clock_ns(CLOCK_REALTIME) / 1e9, "requirements", wanted, "env",
                              object_of(c->body, "env"), "limits", object_of(c->body, "limits"));
    if (check_definition(c, name, about, p) == 0)
        return about;
    json_decref(about);
    return NULL;
}

static int profiles_make(const struct call *c, struct own_profile **ret, struct problem *p) {
    const char *name;
    struct err ignored;
    if (read_name(c, &name, p) < 0 || check_quota(c, p) < 0)
        return -1;
    json_t *about = make_about(c, name, p);
    if (!about)
        return -1;
    struct own_profile *broken = own_find(c->api, c->who.tenant, name);
    if (broken)
        own_remove(broken, &ignored);
    own_spare(c->api, c->who.tenant);
    *ret = own_add(c->api, c->who.tenant, name, about);
    if (build_begin(&c->who, *ret, p) == 0)
        return 0;
    own_remove(*ret, &ignored);
    return -1;
}

static void do_profile_make(struct call *c) {
    struct own_profile *made;
    struct problem p = {0};
    AUTO_BUF json = BUF_INIT;
    if (!may_change(c))
        return;
    if (profiles_make(c, &made, &p) < 0) {
        call_problem(c, &p);
        return;
    }
    profile_put_own(made, false, &json);
    call_json(c, 202, &json);
}

/* ---- removed ---- */

static const struct field remove_fields[] = {
    {.name = "force",
     .type = FIELD_BOOL,
     .fallback = "false",
     .help = "also when sandboxes have it, which go on, or when it is being built"},
};
static const struct schema remove_query = {"", remove_fields, 1, false};

static int check_unused(const struct own_profile *p, struct problem *ret) {
    unsigned n = own_users(p);
    if (p->build)
        return problem_set(ret, "profile_building", "profile %s is being built", p->name);
    if (n)
        return problem_set(ret, "profile_in_use", "%u sandbox%s profile %s", n,
                           n == 1 ? " has" : "es have", p->name);
    return 0;
}

static void do_profile_remove(struct call *c) {
    struct own_profile *p = own_find(c->api, c->who.tenant, c->params[0]);
    const char *force = call_query(c, "force");
    struct problem why;
    struct err e;
    if (!may_change(c))
        return;
    if (!p && find_named(c->api->o.engine, c->params[0]) < c->api->o.engine->config.nprofiles)
        call_refuse(c, "no_right", "profile %s is the operator's", c->params[0]);
    else if (!p)
        profiles_refuse_unknown(c);
    else if (!(force && strcmp(force, "true") == 0) && check_unused(p, &why) < 0)
        call_problem(c, &why);
    else {
        if (p->build)
            build_cancel(p);
        if (own_remove(p, &e) < 0)
            call_fail(c, &e);
        else
            http_reply(c->req, 204, NULL, "", 0);
    }
}

/* ---- routes ---- */

#define ERRORS_OF_MAKE                                                                             \
    "no_right profiles_off profile_exists profile_building too_many_profiles too_many_builds "     \
    "507:profiles_full limit_too_high unknown_profile profile_broken network_unavailable "         \
    "too_much_cpu queue_full memory_budget no_sandbox sandbox_lost audit_unavailable"

/* clang-format off */
static const struct route routes[] = {
    {{"GET", "/v1/profiles", "The operator's profiles, and the tenant's own", "profiles", NULL, NULL,
      200, "the profiles", JSON_TYPE, &pages_query, .gives = &profiles_schema}, do_profiles},
    {{"POST", "/v1/profiles", "Make a profile with packages", "profiles", &make_schema, NULL, 202,
      "the profile, which is being built", JSON_TYPE, .gives = &profile_schema, .replays = true,
      .errors = ERRORS_OF_MAKE}, do_profile_make, .body_max = MB},
    {{"GET", "/v1/profiles/{name}", "Look at a profile", "profiles", NULL, NULL, 200, "the profile",
      JSON_TYPE, .gives = &profile_schema, .errors = "no_such_profile"}, do_profile},
    {{"GET", "/v1/profiles/{name}/events", "Follow the building of one", "profiles", NULL, NULL, 200,
      "the events after number `after`", NULL, &events_query, .events = &build_events_schema,
      .errors = "no_such_profile no_execution"}, do_profile_events},
    {{"DELETE", "/v1/profiles/{name}", "Remove one of the tenant's own", "profiles", NULL, NULL, 204,
      "nothing", NULL, &remove_query,
      .errors = "no_right profiles_off no_such_profile profile_building profile_in_use"},
     do_profile_remove},
};
/* clang-format on */
const struct route_table profiles_routes = ROUTE_TABLE(routes);
