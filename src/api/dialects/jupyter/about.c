/* What Jupyter tells of the service as a whole: its version, how much is there, its description. */

#include "api/dialects/jupyter/jupyter.h"

#include "api/core/spec.h"
#include "base/clock.h"

#include <stdio.h>

static void do_jupyter_version(struct call *c) {
    static const char json[] = "{\"version\":\"" CLOCHE_VERSION "\"}";
    http_reply(c->req, 200, "application/json", json, sizeof json - 1);
}

static void do_jupyter_openapi(struct call *c) {
    spec_give(c, &jupyter_dialect);
}

struct sums {
    unsigned kernels, connections;
    double last;
};

static void count(void *arg, struct jupyter_hub *h) {
    struct sums *s = arg;
    s->kernels++;
    for (const struct jupyter_client *at = h->clients; at; at = at->next)
        s->connections++;
    if (h->last_activity > s->last)
        s->last = h->last_activity;
}

static void do_jupyter_status(struct call *c) {
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    double started = jupyter_now() - (double)(now_ns() - c->api->started_ns) / 1e9;
    struct sums s = {.last = started};
    char date[48];
    jupyter_each(c, count, &s);
    jw_object(&j);
    jupyter_date(date, sizeof date, started);
    jw_key_str(&j, "started", date);
    jupyter_date(date, sizeof date, s.last);
    jw_key_str(&j, "last_activity", date);
    jw_key_uint(&j, "connections", s.connections);
    jw_key_uint(&j, "kernels", s.kernels);
    jw_object_end(&j);
    call_json(c, 200, &json);
}

static const struct field version_fields[] = {HAS("version", FIELD_STRING)};
static const struct schema version_schema = {SCHEMA("JupyterVersion", version_fields)};
static const struct field status_fields[] = {
    HAS("started", FIELD_STRING, .help = "ISO 8601"),
    HAS("last_activity", FIELD_STRING, .help = "ISO 8601"),
    HAS("connections", FIELD_INT),
    HAS("kernels", FIELD_INT),
};
static const struct schema status_schema = {SCHEMA("JupyterStatus", status_fields)};

/* clang-format off */
static const struct route routes[] = {
    {{"GET", "/api", "Jupyter: the version", "jupyter", NULL, NULL, 200, "the version", JSON_TYPE,
      .gives = &version_schema}, do_jupyter_version},
    {{"GET", "/api/swagger.json", "Jupyter: this description, of Jupyter's paths", "jupyter", NULL, NULL,
      200, "OpenAPI", JSON_TYPE, .gives = &spec_schema}, do_jupyter_openapi},
    {{"GET", "/api/swagger.yaml", "Jupyter: the same; JSON is YAML", "jupyter", NULL, NULL, 200,
      "OpenAPI", "text/x-yaml"}, do_jupyter_openapi},
    {{.method = "GET", .path = "/tree"}, do_jupyter_version}, /* "must one log in?" */
    {{"GET", "/api/status", "Jupyter: how much is there", "jupyter", NULL, NULL, 200,
      "since when, kernels, connections", JSON_TYPE, .gives = &status_schema}, do_jupyter_status},
};
/* clang-format on */
const struct route_table jupyter_about_routes = ROUTE_TABLE(routes);
