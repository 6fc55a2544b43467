/* What there is, how it is, and the pages for people. */

#include "api/core/call.h"
#include "api/core/spec.h"
#include "api/jobs/network_field.h"
#include "api/native/native.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "net/policy_json.h"
#include "web/assets.h"

#include <stdio.h>
#include <string.h>

static bool is_up(const struct api *a, const char **why) {
    const struct engine *g = a->o.engine;
    *why = "no profile is ready yet";
    for (unsigned i = 0; i < g->config.nprofiles; i++) {
        if (g->config.profiles[i].removed || g->config.profiles[i].live)
            continue;
        if (g->pools[i].state == PROFILE_READY) {
            *why = NULL;
            return true;
        }
        if (g->pools[i].state == PROFILE_BROKEN)
            *why = g->pools[i].what;
    }
    return false;
}

/* The dialect whose words GET / and GET /health use; never NULL. */
static const struct dialect *first_dialect(const struct api *a) {
    static const struct dialect none = {.name = ""};
    for (unsigned i = 0; i < a->nspeakers; i++) {
        if (a->speakers[i].rank == 1)
            return a->speakers[i].dialect;
    }
    return &none;
}

static const struct field health_fields[] = {
    HAS("status", FIELD_STRING, .help = "ok or error; the first dialect may have its own words"),
    HAS_OR_NULL("message", FIELD_STRING, .help = "why not"),
    HAS("version", FIELD_STRING),
};
static const struct schema health_schema = {SCHEMA("Health", health_fields)};

static void do_health(struct call *c) {
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    const struct dialect *first = first_dialect(c->api);
    const char *why;
    bool up = is_up(c->api, &why) && !audit_refuses(&c->api->audit);
    if (!why)
        why = audit_trouble(&c->api->audit);
    const char *word = up ? first->up : first->down;
    if (!word)
        word = up ? "ok" : "error";
    jw_object(&j);
    jw_key_str(&j, "status", word);
    jw_key_str(&j, "message", why);
    jw_key_str(&j, "version", CLOCHE_VERSION);
    jw_object_end(&j);
    call_json(c, 200, &json);
}

static void put_live(struct jw *j, const struct config *cfg) {
    jw_key(j, "live");
    jw_object(j);
    about_put_limits(j, "defaults", &cfg->live, LIMIT_OF_ANY);
    jw_key_uint(j, "ttl_seconds", cfg->live_ttl_s);
    jw_key_uint(j, "max_ttl_seconds", cfg->live_ttl_max_s);
    jw_key_uint(j, "idle_seconds", cfg->live_idle_s);
    jw_key_uint(j, "per_tenant", cfg->live_per_tenant);
    jw_key_uint(j, "listeners", cfg->live_listeners);
    jw_object_end(j);
}

/* What may be asked for of the network, and why not even that. */
static void put_granted(struct jw *j, const struct call *c) {
    const struct engine *g = c->api->o.engine;
    const char *key = network_of_key(&c->who);
    struct err e;
    jw_key(j, "network");
    jw_object(j);
    jw_key(j, "granted");
    network_rules_put(g->network, j);
    jw_key_str(j, "key", key);
    jw_key(j, "sets");
    network_rules_put_sets(g->network, j);
    jw_key_bool(j, "up", network_is_up(g));
    jw_key_str(j, "problem", network_possible(g, &e) < 0 ? e.text : NULL);
    jw_object_end(j);
}

static const struct field live_fields[] = {
    HAS("defaults", OBJECT(about_limits_schema)),
    HAS("ttl_seconds", FIELD_INT),
    HAS("max_ttl_seconds", FIELD_INT),
    HAS("idle_seconds", FIELD_INT),
    HAS("per_tenant", FIELD_INT),
    HAS("listeners", FIELD_INT),
};
static const struct schema live_info = {SCHEMA("LiveInfo", live_fields)};
static const struct field files_fields[] = {
    HAS("max_mb", FIELD_INT),
    HAS("ttl_seconds", FIELD_INT),
};
static const struct schema files_info = {SCHEMA("FilesInfo", files_fields)};
static const struct field network_fields[] = {
    HAS("granted", OBJECT(net_policy_schema), .help = "by the server"),
    HAS_OR_NULL("key", FIELD_STRING, .help = "what the key narrows that to"),
    HAS("sets", FIELD_LIST),
    HAS("up", FIELD_BOOL),
    HAS_OR_NULL("problem", FIELD_STRING),
};
static const struct schema network_info = {SCHEMA("NetworkInfo", network_fields)};
static const struct field info_fields[] = {
    HAS("name", FIELD_STRING, WORDS("cloche")),
    HAS("version", FIELD_STRING),
    HAS("uptime_seconds", FIELD_REAL),
    HAS("minimum", FIELD_STRING, .help = "of isolation"),
    HAS("defaults", OBJECT(about_limits_schema)),
    HAS("maxima", OBJECT(about_limits_schema)),
    HAS("live", OBJECT(live_info)),
    HAS("files", OBJECT(files_info)),
    HAS("network", OBJECT(network_info)),
    HAS("isolation", LIST_OF(about_layer_schema)),
    HAS("engine", OBJECT(about_schema)),
};
static const struct schema info_schema = {SCHEMA("Info", info_fields)};

static void do_info(struct call *c) {
    AUTO_BUF json = BUF_INIT;
    AUTO_BUF state = BUF_INIT;
    struct jw j = JW_INIT(&json);
    const struct config *cfg = c->api->config;
    about_json(c->api->o.engine, &state);
    jw_object(&j);
    jw_key_str(&j, "name", "cloche");
    jw_key_str(&j, "version", CLOCHE_VERSION);
    jw_key_real(&j, "uptime_seconds", (double)(now_ns() - c->api->started_ns) / 1e9);
    jw_key_str(&j, "minimum", cfg->minimum);
    about_put_limits(&j, "defaults", &cfg->defaults, LIMIT_OF_ANY);
    about_put_limits(&j, "maxima", &cfg->maxima, LIMIT_OF_ANY);
    put_live(&j, cfg);
    jw_key(&j, "files");
    jw_object(&j);
    jw_key_uint(&j, "max_mb", cfg->http.file_mb);
    jw_key_uint(&j, "ttl_seconds", cfg->http.file_ttl_s);
    jw_object_end(&j);
    put_granted(&j, c);
    jw_key(&j, "isolation");
    about_put_isolation(&j, c->api->o.engine);
    jw_key(&j, "engine");
    jw_raw(&j, state.data, state.len);
    jw_object_end(&j);
    call_json(c, 200, &json);
}

static void put_pools(struct buf *to, const struct engine *g) {
    static const struct {
        const char *name, *help;
        bool live;
    } what[] = {{"pool_ready", "Sandboxes that wait for a program.", false},
                {"queue_length", "Programs that wait for a sandbox.", false},
                {"profile_up", "1 when the profile can be used.", false},
                {"live_queue_length", "Live sandboxes that wait for a place.", true}};
    for (unsigned k = 0; k < sizeof what / sizeof *what; k++) {
        buf_addf(to, "# HELP cloche_%s %s\n# TYPE cloche_%s gauge\n", what[k].name, what[k].help,
                 what[k].name);
        for (unsigned i = 0; i < g->config.nprofiles; i++) {
            const struct profile_pool *p = &g->pools[i];
            const char *name = p->config->name;
            if (p->config->removed || p->config->live != what[k].live)
                continue;
            unsigned v = k == 0 ? p->nready : k == 2 ? p->state == PROFILE_READY : p->queue.n;
            buf_addf(to, "cloche_%s{profile=\"%.*s\"} %u\n", what[k].name, (int)strcspn(name, "+"),
                     name, v);
        }
    }
}

static void put_restarts(struct buf *to, const struct engine *g) {
    const struct engine_restarts *r = &g->about.restarts;
    const struct {
        const char *process;
        uint32_t n;
    } what[] = {{"warden", g->config.warden_restarts},
                {"server", r->server},
                {"nursery", r->nurseries},
                {"zygote", r->zygotes},
                {"gate", r->gate}};
    buf_adds(to, "# HELP cloche_restarts_total Processes that died and were started again.\n"
                 "# TYPE cloche_restarts_total counter\n");
    for (size_t i = 0; i < sizeof what / sizeof *what; i++)
        buf_addf(to, "cloche_restarts_total{process=\"%s\"} %u\n", what[i].process, what[i].n);
}

static void put_audit(struct buf *to, const struct audit *a) {
    metrics_gauge(to, "audit_up", "0 when nothing runs because the audit log cannot be written.",
                  !audit_refuses(a));
    metrics_gauge(to, "audit_lines_waiting",
                  "Lines of the audit log that could not be written yet.", (double)a->nlines);
    buf_addf(to,
             "# HELP cloche_audit_failures_total Attempts to write the audit log that failed.\n"
             "# TYPE cloche_audit_failures_total counter\ncloche_audit_failures_total %llu\n"
             "# HELP cloche_audit_lines_lost_total Lines that were given up.\n"
             "# TYPE cloche_audit_lines_lost_total counter\ncloche_audit_lines_lost_total %llu\n",
             (unsigned long long)a->failures, (unsigned long long)a->lost);
}

struct counted {
    const char *name, *help;
    uint64_t n;
};

static void put_counted(struct buf *to, const struct counted *what, size_t n) {
    for (size_t i = 0; i < n; i++)
        buf_addf(to, "# HELP cloche_%s %s\n# TYPE cloche_%s counter\ncloche_%s %llu\n",
                 what[i].name, what[i].help, what[i].name, what[i].name,
                 (unsigned long long)what[i].n);
}

/* Servers in sandboxes, whose clients came through us. */
static void put_passed(struct buf *to, const struct metrics *m) {
    const struct counted what[] = {
        {"port_requests_total", "Requests to servers in sandboxes.", m->passed},
        {"port_received_bytes_total", "Bytes of such requests' bodies.", m->passed_in},
        {"port_sent_bytes_total", "Bytes that such servers answered.", m->passed_out},
    };
    put_counted(to, what, sizeof what / sizeof *what);
}

static void put_network(struct buf *to, const struct engine *g) {
    const struct g_counts n = network_counts(g);
    const struct counted what[] = {
        {"network_asks_total", "Connections that sandboxes asked for.", n.asks},
        {"network_refused_total", "Connections that no rule allowed.", n.refused},
        {"network_connect_errors_total", "Allowed connections that failed.", n.connect_errors},
        {"network_names_total", "Names that sandboxes asked for.", n.names},
        {"network_names_refused_total", "Names that no rule allowed.", n.names_refused},
        {"network_names_failed_total", "Allowed names without an answer.", n.names_failed},
        {"network_sent_bytes_total", "Bytes out of sandboxes, to the network.", n.bytes_out},
        {"network_received_bytes_total", "Bytes into sandboxes, from the network.", n.bytes_in},
    };
    put_counted(to, what, sizeof what / sizeof *what);
    metrics_gauge(to, "network_connections", "Open connections of sandboxes to the network.",
                  (double)n.open);
    metrics_gauge(to, "network_up", "0 while the gate is away: nothing new is reached.",
                  network_is_up(g));
}

static void do_metrics(struct call *c) {
    struct api *a = c->api;
    AUTO_BUF text = BUF_INIT;
    struct store_usage files = store_usage(a->o.store);
    metrics_write(&a->metrics, &text);
    put_pools(&text, a->o.engine);
    put_restarts(&text, a->o.engine);
    put_audit(&text, &a->audit);
    put_network(&text, a->o.engine);
    put_passed(&text, &a->metrics);
    const struct loop_turns *turns = loop_turns(a->o.loop);
    metrics_histogram(&text, "loop_turn_seconds", "Turns of the event loop.", &turns->wall);
    metrics_histogram(&text, "loop_turn_cpu_seconds",
                      "Turns of the event loop, by the processor time they took.", &turns->cpu);
    metrics_gauge(&text, "loop_turn_longest_seconds",
                  "The longest turn since the server process started.", turns->wall.longest);
    metrics_gauge(&text, "sandboxes", "Sandboxes alive, ready ones included.",
                  a->o.engine->counts.sandboxes);
    metrics_gauge(&text, "live_sandboxes", "Sandboxes that stay.", a->o.engine->counts.live);
    metrics_gauge(&text, "memory_charged_bytes", "Memory that programs under way count with.",
                  (double)a->o.engine->charged);
    metrics_gauge(&text, "memory_budget_bytes", "What that may be at most; 0: no bound.",
                  a->config->memory_budget_mb * 1048576.0);
    metrics_gauge(&text, "bodies_bytes", "Bodies of requests under way.",
                  (double)http_bodies(a->http));
    metrics_gauge(&text, "replies_bytes", "What waits for clients to read it.",
                  (double)http_replies(a->http));
    metrics_gauge(&text, "connections", "Open HTTP connections.", http_connections(a->http));
    metrics_gauge(&text, "requests_active", "Requests under way.", a->active);
    metrics_gauge(&text, "stored_files", "Files in the store.", files.files);
    metrics_gauge(&text, "stored_bytes", "Bytes in the store, and 8 KiB for each file.",
                  (double)files.bytes);
    metrics_gauge(&text, "resident_memory_bytes", "Resident memory of the server process.",
                  (double)about_resident_bytes());
    buf_addf(&text,
             "# HELP cloche_replies_cut_total Connections cut because their clients did not read.\n"
             "# TYPE cloche_replies_cut_total counter\ncloche_replies_cut_total %llu\n",
             (unsigned long long)http_replies_cut(a->http));
    buf_addf(&text,
             "# HELP cloche_connections_evicted_total Waiting connections closed for new ones.\n"
             "# TYPE cloche_connections_evicted_total counter\n"
             "cloche_connections_evicted_total %llu\n",
             (unsigned long long)http_evicted(a->http));
    buf_addf(&text,
             "# HELP cloche_log_lines_lost_total Lines of the log that nobody took.\n"
             "# TYPE cloche_log_lines_lost_total counter\ncloche_log_lines_lost_total %llu\n",
             (unsigned long long)log_lost());
    metrics_gauge(&text, "uptime_seconds", "Seconds since the server process started.",
                  (double)(now_ns() - a->started_ns) / 1e9);
    http_reply(c->req, 200, "text/plain; version=0.0.4; charset=utf-8", text.data, text.len);
}

static void info_give(struct call *c, const struct web_asset *a) {
    http_add_header(c->req, "Content-Security-Policy",
                    "default-src 'self'; img-src 'self' blob:; base-uri 'none'; "
                    "frame-ancestors 'none'; form-action 'self'");
    http_add_header(c->req, "X-Content-Type-Options", "nosniff");
    http_add_header(c->req, "Referrer-Policy", "no-referrer");
    http_add_header(c->req, "Cache-Control", "no-cache");
    http_reply(c->req, 200, a->type, a->data, a->len);
}

static void do_asset(struct call *c) {
    for (size_t i = 0; i < web_assets_n; i++) {
        if (strcmp(web_assets[i].path, http_path(c->req)) == 0) {
            info_give(c, &web_assets[i]);
            return;
        }
    }
    struct problem p;
    problem_set(&p, "no_route", "there is nothing at this path");
    p.detail = "Not Found";
    call_problem(c, &p);
}

/* Dialects add their own. */
static const struct field root_fields[] = {
    HAS("name", FIELD_STRING, WORDS("cloche")),
    HAS("version", FIELD_STRING),
    HAS("what", FIELD_STRING),
    HAS("try", FIELD_STRING),
    HAS("docs", FIELD_STRING),
    HAS("openapi", FIELD_STRING),
};
static const struct schema root_schema = {SCHEMA("About", root_fields), .open = true};
static const struct api_reply root_page[] = {{200, "a page to try it", "text/html", NULL}, {0}};

static void do_root(struct call *c) {
    const struct dialect *first = first_dialect(c->api);
    const char *why, *accept = http_header(c->req, "Accept");
    http_add_header(c->req, "Vary", "Accept");
    if (accept && strstr(accept, "text/html")) {
        do_asset(c);
        return;
    }
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    jw_object(&j);
    jw_key_str(&j, "name", "cloche");
    jw_key_str(&j, "version", first->version ? first->version : CLOCHE_VERSION);
    for (unsigned i = 0; i < c->api->nspeakers; i++) {
        const struct speaker *s = &c->api->speakers[i];
        if (s->rank && s->dialect->put_about)
            s->dialect->put_about(c, is_up(c->api, &why), &j);
    }
    jw_key_str(&j, "what", "runs untrusted Python in warm, isolated sandboxes");
    jw_key_str(&j, "try", "POST /v1/execute {\"code\": \"print(1)\"}");
    jw_key_str(&j, "docs", "/docs");
    jw_key_str(&j, "openapi", "/openapi.json");
    jw_object_end(&j);
    call_json(c, 200, &json);
}

/* ---- routes ---- */

/* clang-format off */
static const struct route routes[] = {
    {{"GET", "/v1/info", "Version, limits, state", "service", NULL, NULL, 200, "about this server",
      JSON_TYPE, .gives = &info_schema}, do_info},
    {{"GET", "/health", "Whether programs can run", "service", NULL, NULL, 200, "ok or error",
      JSON_TYPE, .gives = &health_schema}, do_health, .is_open = true, .is_free = true,
     .at_doors = true},
    {{"GET", "/metrics", "Counters for Prometheus", "service", NULL, NULL, 200, "text",
      "text/plain"}, do_metrics, .is_free = true},
    {{"GET", "/openapi.json", "This specification", "service", NULL, NULL, 200, "OpenAPI 3.1",
      JSON_TYPE, .gives = &spec_schema}, spec_give_all, .is_open = true, .is_free = true},
    {{"GET", "/docs", "The specification for people", "service", NULL, NULL, 200, "a page",
      "text/html"}, do_asset, .is_open = true, .is_free = true},
    {{"GET", "/", "What this is, or a page to try it", "service", NULL, NULL, 200, "a page or JSON",
      JSON_TYPE, .gives = &root_schema, .more = root_page}, do_root, .is_open = true, .is_free = true},
    {{.method = "GET", .path = "/assets/{name}"}, do_asset, .is_open = true, .is_free = true},
};
/* clang-format on */
const struct route_table info_routes = ROUTE_TABLE(routes);
