/* /v1/sandboxes: live sandboxes made, listed, looked at, changed and ended. */

#include "api/core/pages.h"
#include "api/native/native.h"

#include "api/core/doors.h"
#include "api/jobs/binds_field.h"
#include "api/jobs/cell_job.h"
#include "api/jobs/live_requests.h"
#include "api/jobs/network_change.h"
#include "api/jobs/request_fields.h"
#include "base/fd.h"
#include "base/json_value.h"
#include "base/log.h"
#include "base/num.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_METADATA 32
#define MAX_NAME     128 /* bytes; a value of metadata may have eight times that */
#define PAGE         100
#define MAX_PAGE     1000
#define METADATA_MAX (40u << 10)  /* bytes as JSON: all that may be in it, without escapes */
#define LOOKS_MAX    (512u << 10) /* bytes of metadata that one page is made of */

static const struct field sandbox_fields[] = {
    FIELD_OF_PROFILE("what is preloaded; auto is the one with the most in it"),
    FIELD_OF_FILES("files in its workspace"),
    FIELD_OF_ENV("environment variables of its kernels and commands"),
    FIELD_OF_LIMITS("up to the maxima"),
    FIELD_OF_NETWORK("what it may reach"),
    FIELD_OF_SECONDS("ttl_seconds", "how long it lives"),
    FIELD_OF_SECONDS("idle_seconds", "how long without being used"),
    {.name = "metadata",
     .type = FIELD_MAP,
     .flags = FIELD_MAX,
     .max = MAX_METADATA,
     .help = "strings to find it by"},
    {.name = "name", .type = FIELD_STRING, .flags = FIELD_NULLABLE, .fallback = "null"},
    {.name = "listen",
     .type = FIELD_BOOL,
     .fallback = "false",
     .help = "a port of its own, for clients of ipybox and Jupyter"},
    FIELD_OF_BINDS("directories of the host, of those that the operator allows"),
};
static const struct schema sandbox_schema = {"SandboxRequest", sandbox_fields, 11, false};

static const struct field change_fields[] = {
    FIELD_OF_LIMITS("those that change"),
    FIELD_OF_NETWORK("what it may reach from now on"),
    FIELD_OF_SECONDS("ttl_seconds", "how long it lives from now on"),
    FIELD_OF_SECONDS("idle_seconds", NULL),
    {.name = "metadata",
     .type = FIELD_MAP,
     .flags = FIELD_MAX,
     .max = MAX_METADATA,
     .help = "instead of what there is"},
    {.name = "name", .type = FIELD_STRING},
};
static const struct schema sandbox_change_schema = {"SandboxChange", change_fields, 6, false};

/* ---- made ---- */

static void sandboxes_reply_made(struct outlet *o, struct live *l) {
    AUTO_BUF json = BUF_INIT;
    struct problem p;
    if (live_listens(l) && doors_open(o->who.api, l, &p) < 0) {
        outlet_problem(o, &p);
        live_end(l, "there was no port for it", NULL, NULL);
        return;
    }
    live_json(l, &json);
    outlet_json(o, 201, &json, NULL);
}

static int check_name(const struct call *c, const struct live *own, struct problem *p) {
    const char *name = field_str(c->body, "name", "");
    char quoted[80];
    struct err e;
    if (strlen(name) > MAX_NAME)
        return problem_set(p, "bad_value", "name has more than 128 bytes");
    if (!*name || !live_name_taken(c->api->o.engine, c->who.tenant, name, own))
        return 0;
    err_user(&e, "name_taken", "there is a sandbox with the name %s already",
             log_quote(name, quoted, sizeof quoted));
    *p = problem_of(&e);
    return -1;
}

/* `own`: the sandbox that is to change, or NULL. */
static int check_words(const struct call *c, const struct live *own, struct problem *p) {
    const json_t *body = c->body;
    const char *key;
    json_t *value;
    if (check_name(c, own, p) < 0)
        return -1;
    json_t *metadata = json_object_get(body, "metadata");
    if (json_is_object(metadata) && json_dumpb(metadata, NULL, 0, JSON_COMPACT) > METADATA_MAX)
        return problem_set(p, "bad_value", "metadata has more than 40960 bytes as JSON");
    json_object_foreach(metadata, key, value) {
        if (!*key || strlen(key) > MAX_NAME || json_string_length(value) > 8 * MAX_NAME)
            return problem_set(p, "bad_value",
                               "metadata: a name has 1 to 128 bytes, a value at most 1024");
    }
    return env_check_kept(body, p);
}

static int sandboxes_read_request(struct call *c, struct live_request *q, struct problem *p) {
    const json_t *body = c->body;
    const char *name = field_str(body, "name", NULL);
    *q = live_request_for(&c->who);
    q->profile = xstrdup(field_str(body, "profile", "auto"));
    q->name = name ? xstrdup(name) : NULL;
    q->metadata = field_dump(body, "metadata");
    q->env = field_dump(body, "env");
    q->ttl_s = (uint32_t)field_int(body, "ttl_seconds", 0);
    q->idle_s = (uint32_t)field_int(body, "idle_seconds", 0);
    q->listens = field_bool(body, "listen", false);
    if (!q->metadata)
        q->metadata = xstrdup("{}");
    if ((q->listens && doors_room(c->api, c->who.tenant, p) < 0) || binds_read(c, q, p) < 0)
        return -1;
    if (check_words(c, NULL, p) < 0 || limits_read(body, UINT32_MAX, &q->limits, p) < 0 ||
        network_read(&c->who, body, &q->network, p) < 0)
        return -1;
    return inputs_read(
        &(struct inputs_source){
            .who = &c->who, .request = c->body, .large = c->large, .live = true},
        &q->inputs, &q->ninputs, p);
}

static void do_sandbox_new(struct call *c) {
    live_requests_make(c, sandboxes_read_request, sandboxes_reply_made);
}

/* ---- listed and looked at ---- */

static const char prefix[] = "metadata.";
static const struct field page_fields[] = {
    {.name = "metadata.NAME",
     .type = FIELD_STRING,
     .help = "only those that have this value there"},
    {.name = "limit",
     .type = FIELD_INT,
     .flags = FIELD_MIN | FIELD_MAX,
     .min = 1,
     .max = MAX_PAGE,
     .fallback = "100"},
    {.name = "after", .type = FIELD_STRING, .help = "what an earlier page has as next"},
};
static const struct schema sandboxes_query = {"", page_fields, 3, false};

/* What the query wants as metadata.NAME=VALUE, as it is written in a sandbox's. */
struct wanted {
    char *name, *value; /* owned: JSON, and NULL when no sandbox can have it */
};
struct sieve {
    struct wanted at[MAX_METADATA];
    unsigned n;
    size_t looks; /* bytes that were looked at */
};

static char *json_of(const char *text) {
    json_auto_t *v = json_string(text);
    return v ? json_dumps(v, JSON_ENCODE_ANY) : NULL;
}

static bool read_sieve(struct call *c, struct sieve *to) {
    const char *name, *value;
    for (unsigned i = 0; http_query_at(c->req, i, &name, &value); i++) {
        if (strncmp(name, prefix, sizeof prefix - 1) != 0)
            continue;
        if (to->n == MAX_METADATA) {
            call_refuse(c, "bad_value", "more than %d names of metadata, which no sandbox has",
                        MAX_METADATA);
            return false;
        }
        to->at[to->n++] =
            (struct wanted){json_of(name + sizeof prefix - 1), json_of(value ? value : "")};
    }
    return true;
}

static void sieve_done(struct sieve *s) {
    for (unsigned i = 0; i < s->n; i++) {
        free(s->at[i].name);
        free(s->at[i].value);
    }
}

/* Nothing is parsed: a page may look at hundreds, and each may be long. */
static bool has_metadata(struct sieve *s, const struct live *l) {
    const char *all = live_metadata(l);
    size_t len = strlen(all);
    s->looks += len;
    for (unsigned i = 0; i < s->n; i++) {
        const struct wanted *w = &s->at[i];
        s->looks += len;
        struct json_span has = {0};
        if (w->name && w->value)
            has = json_member_as(all, len, w->name);
        if (!has.at || has.len != strlen(w->value) || memcmp(has.at, w->value, has.len) != 0)
            return false;
    }
    return true;
}

static bool read_page(struct call *c, uint32_t *ret) {
    const struct num_rule rule = {"limit", 1, MAX_PAGE};
    const char *limit = call_query(c, "limit");
    struct err e;
    *ret = PAGE;
    if (!limit || num_u32(limit, &rule, ret, &e) == 0)
        return true;
    call_refuse(c, "bad_value", "%s", e.text);
    return false;
}

/* Pages go by the time at which sandboxes were made, which stays when they end meanwhile. */
static uint64_t place_of(const struct live *l) {
    return (uint64_t)(live_created(l) * 1e6);
}

/* What an earlier page has as next, or a sandbox. */
static bool read_place(struct call *c, uint64_t *ret) {
    const struct num_rule rule = {"after", 0, INT64_MAX};
    const char *after = call_query(c, "after");
    struct err e;
    *ret = 0;
    if (!after || num_u64(after, &rule, ret, &e) == 0)
        return true;
    const struct live *l = live_find(c->api->o.engine, c->who.tenant, after, &e);
    if (l)
        *ret = place_of(l);
    else
        call_fail(c, &e);
    return l != NULL;
}

static void add_sandbox(struct jw *j, struct live *l) {
    AUTO_BUF one = BUF_INIT;
    live_json(l, &one);
    jw_raw(j, one.data, one.len);
}

/* Those of the tenant from that place on; the place where the next page begins, or 0. */
static uint64_t add_page(const struct call *c, struct sieve *s, uint64_t place, uint32_t most,
                         struct jw *j) {
    uint32_t n = 0;
    for (struct live *l = NULL; (l = live_next(c->api->o.engine, c->who.tenant, l));) {
        if (place_of(l) <= place)
            continue;
        if (s->looks > LOOKS_MAX)
            return place;
        if (has_metadata(s, l)) {
            if (n++ == most)
                return place;
            add_sandbox(j, l);
        }
        place = place_of(l);
    }
    return 0;
}

static void reply_page(struct call *c, struct sieve *s, uint64_t place, uint32_t most) {
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    char text[24];
    jw_object(&j);
    jw_key(&j, "sandboxes");
    jw_array(&j);
    uint64_t next = add_page(c, s, place, most, &j);
    jw_array_end(&j);
    snprintf(text, sizeof text, "%" PRIu64, next);
    jw_key_str(&j, "next", next ? text : NULL);
    jw_object_end(&j);
    call_json(c, 200, &json);
}

static void do_sandboxes(struct call *c) {
    struct sieve s = {.n = 0};
    uint32_t most;
    uint64_t place;
    if (read_page(c, &most) && read_place(c, &place) && read_sieve(c, &s))
        reply_page(c, &s, place, most);
    sieve_done(&s);
}

static void sandboxes_reply_with(struct call *c, struct live *l) {
    AUTO_BUF json = BUF_INIT;
    live_json(l, &json);
    call_json(c, 200, &json);
}

static void do_sandbox(struct call *c) {
    struct live *l = call_live(c);
    if (l)
        sandboxes_reply_with(c, l);
}

static void do_sandbox_change(struct call *c) {
    struct live *l = call_live(c);
    struct limits limits;
    struct problem p = {0};
    struct err e;
    if (!l)
        return;
    if (check_words(c, l, &p) < 0 || limits_read(c->body, UINT32_MAX, &limits, &p) < 0) {
        call_problem(c, &p);
        return;
    }
    AUTO_FREE char *metadata = field_dump(c->body, "metadata");
    const struct live_change change = {.metadata = metadata,
                                       .name = field_str(c->body, "name", NULL),
                                       .limits =
                                           json_object_get(c->body, "limits") ? &limits : NULL,
                                       .ttl_s = (uint32_t)field_int(c->body, "ttl_seconds", 0),
                                       .idle_s = (uint32_t)field_int(c->body, "idle_seconds", 0)};
    const json_t *network = json_object_get(c->body, "network");
    bool has_network = network && !json_is_null(network);
    struct network_terms *t = has_network ? network_of_value(&c->who, network, &p) : NULL;
    if (has_network && !t)
        call_problem(c, &p);
    else if (live_change(l, &change, &e) < 0)
        call_fail(c, &e);
    else if (t)
        network_change(c, l, &t, sandboxes_reply_with);
    else
        sandboxes_reply_with(c, l);
    network_terms_free(t);
}

/* ---- ended ---- */

static void do_sandbox_delete(struct call *c) {
    struct live *l = call_live(c);
    if (l)
        live_requests_end(c, l, NULL);
}

static void pause_or_resume(struct call *c, bool pause) {
    struct live *l = call_live(c);
    struct err e;
    if (!l)
        return;
    if (live_pause(l, pause, &e) < 0)
        call_fail(c, &e);
    else
        sandboxes_reply_with(c, l);
}

static void do_sandbox_pause(struct call *c) {
    pause_or_resume(c, true);
}

static void do_sandbox_resume(struct call *c) {
    pause_or_resume(c, false);
}

static const struct field list_fields[] = {
    HAS("sandboxes", LIST_OF(live_schema)),
    PAGE_NEXT,
};
static const struct schema list_schema = {SCHEMA("SandboxList", list_fields)};

#define ERRORS_OF_NEW                                                                              \
    ERRORS_OF_START "too_many_sandboxes name_taken cannot_limit too_many_listeners "               \
                    "cannot_listen no_port bind_not_allowed bad_bind"
#define ERRORS_OF_CHANGE                                                                           \
    ERRORS_OF_SANDBOX ERRORS_OF_NETWORK "name_taken limit_too_high cannot_limit disk_full"

/* ---- routes ---- */

/* clang-format off */
static const struct route routes[] = {
    {{"POST", "/v1/sandboxes", "Make a sandbox that stays", "sandboxes", &sandbox_schema, NULL, 201,
      "the sandbox", JSON_TYPE, .gives = &live_schema, .replays = true, .errors = ERRORS_OF_NEW},
     do_sandbox_new, .body_max = 64 * MB,
     .prepare = inputs_prepare},
    {{"GET", "/v1/sandboxes", "List sandboxes, by metadata.NAME=VALUE", "sandboxes", NULL, NULL, 200,
      "a page of sandboxes", JSON_TYPE, &sandboxes_query, .gives = &list_schema,
      .errors = ERRORS_OF_SANDBOX}, do_sandboxes},
    {{"GET", "/v1/sandboxes/{id}", "Look at a sandbox", "sandboxes", NULL, NULL, 200, "the sandbox",
      JSON_TYPE, .gives = &live_schema, .errors = ERRORS_OF_SANDBOX}, do_sandbox},
    {{"PATCH", "/v1/sandboxes/{id}", "Change its life time, limits, metadata", "sandboxes",
      &sandbox_change_schema, NULL, 200, "the sandbox", JSON_TYPE, .gives = &live_schema,
      .errors = ERRORS_OF_CHANGE}, do_sandbox_change,
     .body_max = MB},
    {{"DELETE", "/v1/sandboxes/{id}", "End a sandbox", "sandboxes", NULL, NULL, 204, "nothing", NULL,
      .errors = ERRORS_OF_SANDBOX}, do_sandbox_delete},
    {{"POST", "/v1/sandboxes/{id}/pause", "Freeze all of it", "sandboxes", NULL, NULL, 200,
      "the sandbox", JSON_TYPE, .gives = &live_schema, .errors = ERRORS_OF_SANDBOX "cannot_pause"},
     do_sandbox_pause},
    {{"POST", "/v1/sandboxes/{id}/resume", "Go on", "sandboxes", NULL, NULL, 200, "the sandbox",
      JSON_TYPE, .gives = &live_schema, .errors = ERRORS_OF_SANDBOX "cannot_pause"},
     do_sandbox_resume},
};
/* clang-format on */
const struct route_table sandboxes_routes = ROUTE_TABLE(routes);
