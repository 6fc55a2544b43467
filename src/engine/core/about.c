/* See about.h. */

#include "engine/core/about.h"

#include "base/clock.h"
#include "engine/core/engine.h"
#include "engine/core/sandbox.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void about_init(struct engine_about *a) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    a->started = (double)now.tv_sec + (double)now.tv_nsec / 1e9;
    a->started_ns = now_ns();
}

void about_layer(struct engine_about *a, struct wire_in *in) {
    struct w_layer m;
    struct err e;
    if (w_layer_get(in, &m, &e) < 0 || m.state > 2 || a->nlayers == ABOUT_MAX_LAYERS)
        return;
    struct engine_layer *l = &a->layers[a->nlayers++];
    snprintf(l->name, sizeof l->name, "%s", m.name);
    snprintf(l->how, sizeof l->how, "%s", m.how);
    l->state = m.state;
}

void about_restarts(struct engine_about *a, struct wire_in *in) {
    struct w_restarts m;
    struct err e;
    if (w_restarts_get(in, &m, &e) == 0)
        a->restarts = (struct engine_restarts){m.server, m.nurseries, m.zygotes, m.gate};
}

uint64_t about_resident_bytes(void) {
    unsigned long size, resident = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (f && fscanf(f, "%lu %lu", &size, &resident) != 2)
        resident = 0;
    if (f)
        fclose(f);
    return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* ---- what is told ---- */

/* The words of the list LIMITS, as members of a struct field. */
#define AS_NUM(lo, hi)           .type = FIELD_INT
#define AS_MILLI(lo, hi)         .type = FIELD_INT
#define AS_LONG(lo, hi)          .type = FIELD_INT
#define AS_CORES(lo, hi)         .type = FIELD_REAL
#define NAMED(name_, flag, unit) .name = name_
#define HELP(takes, help_)       .help = help_
#define TOLD                     .flags = FIELD_REQUIRED | FIELD_NULLABLE

/* clang-format off */
#define OF_ANY(member, type_, scope, named, helped, ...) {named, AS_##type_, helped, TOLD},
static const struct field limits_fields[] = {LIMITS(OF_ANY)};

#define OF_KERNEL(member, type_, scope, named, helped, ...) OF_KERNEL_##scope({named, AS_##type_, helped, TOLD})
#define OF_KERNEL_CALL(...)
#define OF_KERNEL_CELL(...)
#define OF_KERNEL_SANDBOX(...)
#define OF_KERNEL_KERNEL(...)  __VA_ARGS__,
static const struct field kernel_limits_fields[] = {LIMITS(OF_KERNEL)};
/* clang-format on */

const struct schema about_limits_schema = {SCHEMA("LimitsInForce", limits_fields),
                                           .help = "null: as much as the others allow"};
const struct schema about_kernel_limits_schema = {
    SCHEMA("KernelLimitsInForce", kernel_limits_fields),
    .help = "null: as much as the sandbox may have"};

static const struct field layer_fields[] = {
    HAS("layer", FIELD_STRING),
    HAS("state", FIELD_STRING, WORDS("ok", "weak", "missing")),
    HAS("detail", FIELD_STRING),
};
const struct schema about_layer_schema = {SCHEMA("IsolationLayer", layer_fields)};

static const struct field restarts_fields[] = {
    HAS("warden", FIELD_INT),  HAS("server", FIELD_INT), HAS("nurseries", FIELD_INT),
    HAS("zygotes", FIELD_INT), HAS("gate", FIELD_INT),
};
static const struct schema restarts_schema = {SCHEMA("Restarts", restarts_fields)};

static const struct field profile_fields[] = {
    HAS("name", FIELD_STRING),
    HAS("state", FIELD_STRING, WORDS("starting", "ready", "broken", "restarting")),
    HAS("what", FIELD_STRING, .help = "its Python, or why it is broken"),
    HAS("modules", FIELD_STRING),
    HAS("ready", FIELD_INT),
    HAS("pool", FIELD_INT),
    HAS("stamp", FIELD_STRING, .help = "another one when what it is made of changed"),
    HAS("busy", FIELD_INT, .help = "sandboxes that have a program, or are live"),
    HAS("making", FIELD_INT),
    HAS("queued", FIELD_INT),
    ABOUT_LIVE_FIELDS,
};
static const struct schema profile_schema = {SCHEMA("ProfileState", profile_fields)};

static const struct field about_fields[] = {
    HAS("version", FIELD_STRING),
    HAS("sandboxes", FIELD_INT),
    HAS("live_sandboxes", FIELD_INT),
    HAS("max_sandboxes", FIELD_INT),
    HAS("executions", FIELD_INT),
    HAS("memory_budget_mb", FIELD_INT),
    HAS("memory_charged_bytes", FIELD_INT),
    HAS_OR_NULL("trouble", FIELD_STRING),
    HAS("started", FIELD_REAL, .help = "unix time"),
    HAS("uptime_seconds", FIELD_REAL),
    HAS("running", FIELD_INT),
    HAS("queued", FIELD_INT),
    HAS("requests", FIELD_INT),
    HAS("memory_bytes", FIELD_INT),
    HAS("restarts", OBJECT(restarts_schema)),
    HAS("profiles", LIST_OF(profile_schema)),
};
const struct schema about_schema = {SCHEMA("EngineState", about_fields)};

void about_put(struct jw *j, const struct engine *g) {
    const struct engine_about *a = &g->about;
    unsigned running = g->counts.cells, queued = 0;
    for (const struct sandbox *s = g->sandboxes; s; s = s->next)
        running += s->state == SANDBOX_BUSY && !s->pool->config->live;
    for (unsigned i = 0; i < g->config.nprofiles; i++)
        queued += g->pools[i].queue.n;
    jw_key_real(j, "started", a->started);
    jw_key_real(j, "uptime_seconds", (double)(now_ns() - a->started_ns) / 1e9);
    jw_key_uint(j, "running", running);
    jw_key_uint(j, "queued", queued);
    jw_key_uint(j, "requests", g->counts.requests);
    jw_key_uint(j, "memory_bytes", about_resident_bytes());
    jw_key(j, "restarts");
    jw_object(j);
    jw_key_uint(j, "warden", g->config.warden_restarts);
    jw_key_uint(j, "server", a->restarts.server);
    jw_key_uint(j, "nurseries", a->restarts.nurseries);
    jw_key_uint(j, "zygotes", a->restarts.zygotes);
    jw_key_uint(j, "gate", a->restarts.gate);
    jw_object_end(j);
}

void about_put_isolation(struct jw *j, const struct engine *g) {
    static const char *const states[] = {"ok", "weak", "missing"};
    jw_array(j);
    for (unsigned i = 0; i < g->about.nlayers; i++) {
        const struct engine_layer *l = &g->about.layers[i];
        jw_object(j);
        jw_key_str(j, "layer", l->name);
        jw_key_str(j, "state", states[l->state]);
        jw_key_str(j, "detail", l->how);
        jw_object_end(j);
    }
    jw_array_end(j);
}

void about_put_live(struct jw *j, const struct engine *g, unsigned profile) {
    static const char *const states[] = {"starting", "ready", "broken", "starting"};
    const struct profile_pool *p = pool_live_at(g, profile);
    jw_key_str(j, "live", p ? states[p->state] : "off");
    jw_key_str(j, "live_what", p && p->state == PROFILE_BROKEN ? p->what : NULL);
}

void about_put_limits(struct jw *j, const char *key, const struct limits *l, unsigned scopes) {
    jw_key(j, key);
    jw_object(j);
    for (size_t i = 0; i < LIMITS_; i++) {
        uint64_t v = limits_value(l, i);
        if (!(limits_info[i].scope & scopes))
            continue;
        jw_key(j, limits_info[i].name);
        if (v == 0) /* as much as the others allow */
            jw_null(j);
        else if (limits_info[i].type == LIMIT_CORES)
            jw_real(j, (double)v / 100);
        else
            jw_uint(j, v);
    }
    jw_object_end(j);
}

static unsigned busy(const struct profile_pool *p) {
    const struct profile_pool *live = pool_live_at(p->engine, p->index);
    unsigned n = 0;
    for (const struct sandbox *s = p->engine->sandboxes; s; s = s->next)
        n += s->state == SANDBOX_BUSY && (s->pool == p || s->pool == live);
    return n;
}

static void put_profile(struct jw *j, const struct profile_pool *p) {
    static const char *const states[] = {"starting", "ready", "broken", "restarting"};
    jw_object(j);
    jw_key_str(j, "name", p->config->name);
    jw_key_str(j, "state", states[p->state]);
    jw_key_str(j, "what", p->what);
    jw_key_str(j, "modules", p->modules);
    jw_key_uint(j, "ready", p->nready);
    jw_key_uint(j, "pool", p->config->pool);
    char stamp[24];
    snprintf(stamp, sizeof stamp, "%016" PRIx64, p->config->stamp);
    jw_key_str(j, "stamp", stamp);
    jw_key_uint(j, "busy", busy(p));
    jw_key_uint(j, "making", p->making);
    jw_key_uint(j, "queued", p->queue.n);
    about_put_live(j, p->engine, p->index);
    jw_object_end(j);
}

void about_json(const struct engine *g, struct buf *to) {
    struct jw j = JW_INIT(to);
    jw_object(&j);
    jw_key_str(&j, "version", CLOCHE_VERSION);
    jw_key_uint(&j, "sandboxes", g->counts.sandboxes);
    jw_key_uint(&j, "live_sandboxes", g->counts.live);
    jw_key_uint(&j, "max_sandboxes", g->config.max_sandboxes);
    jw_key_uint(&j, "executions", g->counts.runs);
    jw_key_uint(&j, "memory_budget_mb", g->config.memory_budget_mb);
    jw_key_uint(&j, "memory_charged_bytes", g->charged);
    jw_key_str(&j, "trouble", g->trouble ? g->trouble(g->trouble_arg) : NULL);
    about_put(&j, g);
    jw_key(&j, "profiles");
    jw_array(&j);
    for (unsigned i = 0; i < g->config.nprofiles; i++)
        if (!g->config.profiles[i].removed && !g->config.profiles[i].live)
            put_profile(&j, &g->pools[i]);
    jw_array_end(&j);
    jw_object_end(&j);
}
