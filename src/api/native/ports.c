/* Servers inside a live sandbox: /v1/sandboxes/{id}/ports, which there are, and …/ports/{port}/…,
 * whatever they say. port_call.c passes one request on, port_head.c writes the heads. */

#include "api/native/ports.h"

#include "api/core/sites.h"
#include "api/jobs/cell_job.h"
#include "api/native/native.h"
#include "base/num.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- which there are ---- */

struct port_list {
    struct call *call; /* borrowed: owns us */
    struct ports_ask ask;
};

static void port_list_free(void *state) {
    struct port_list *l = state;
    live_ports_leave(&l->ask);
    free(l);
}

static const struct field port_fields[] = {
    HAS("port", FIELD_INT),
    HAS("path", FIELD_STRING, .help = "of this server, where it is reached"),
    HAS_OR_NULL("url", FIELD_STRING, .help = "its own, where the operator has a domain for that"),
};
static const struct schema port_schema = {SCHEMA("Port", port_fields)};
static const struct field ports_fields[] = {
    HAS("ports", LIST_OF(port_schema)),
    HAS("truncated", FIELD_BOOL, .help = "there are more than 1024"),
};
static const struct schema ports_schema = {SCHEMA("PortList", ports_fields)};

static void port_list_on_answer(void *arg, const struct ports_answer *a) {
    struct port_list *l = arg;
    struct call *c = l->call;
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    char path[ID_MAX + 40];
    if (a->why) {
        call_fail(c, a->why);
        return;
    }
    jw_object(&j);
    jw_key(&j, "ports");
    jw_array(&j);
    for (size_t i = 0; i < a->n; i++) {
        snprintf(path, sizeof path, "/v1/sandboxes/%s/ports/%u/", c->params[0], ports_at(a, i));
        jw_object(&j);
        jw_key_uint(&j, "port", ports_at(a, i));
        jw_key_str(&j, "path", path);
        AUTO_BUF url = BUF_INIT;
        if (*c->api->config->http.ports_domain) {
            site_url(c, c->params[0], ports_at(a, i), &url);
            buf_addc(&url, '/');
        }
        jw_key_str(&j, "url", url.len ? url.data : NULL);
        jw_object_end(&j);
    }
    jw_array_end(&j);
    jw_key_bool(&j, "truncated", a->cut);
    jw_object_end(&j);
    call_json(c, 200, &json);
}

static void do_ports(struct call *c) {
    struct live *live = call_live(c);
    struct err e;
    if (!live)
        return;
    struct port_list *l = xcalloc(1, sizeof *l);
    *l = (struct port_list){.call = c, .ask = {.fn = port_list_on_answer, .arg = l}};
    c->state = l;
    c->state_done = port_list_free;
    if (live_ports_list(live, &l->ask, &e) < 0)
        call_fail(c, &e);
}

/* ---- links ---- */

#define LINK_TTL       3600
#define LINK_TTL_LEAST 1
#define LINK_TTL_MOST  (7 * 24 * 3600)

static const struct field link_fields[] = {
    {.name = "port",
     .type = FIELD_INT,
     .flags = FIELD_REQUIRED | FIELD_MIN | FIELD_MAX,
     .min = 1,
     .max = 65535},
    {.name = "ttl_seconds",
     .type = FIELD_INT,
     .flags = FIELD_MIN | FIELD_MAX,
     .min = LINK_TTL_LEAST,
     .max = LINK_TTL_MOST,
     .fallback = "3600",
     .help = "how long it opens the server to whoever has it"},
};
static const struct schema link_schema = {SCHEMA("LinkRequest", link_fields)};
static const struct field made_fields[] = {
    HAS("url", FIELD_STRING),
    HAS("expires", FIELD_INT,
        .help = "unix time; it ends with the sandbox, or with the key that "
                "made it, if that is before"),
};
static const struct schema made_schema = {SCHEMA("Link", made_fields)};

static void reply_link(struct call *c, const struct link_claim *claim) {
    AUTO_BUF url = BUF_INIT;
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    site_url(c, claim->sandbox, claim->port, &url);
    buf_adds(&url, "/?" SITE_PARAM "=");
    link_write(&c->api->links, claim, &url);
    jw_object(&j);
    jw_key_str(&j, "url", url.data);
    jw_key_uint(&j, "expires", claim->expires);
    jw_object_end(&j);
    call_json(c, 201, &json);
}

static void do_link(struct call *c) {
    struct problem p;
    const struct live *l = call_live(c);
    if (!l)
        return;
    if (!*c->api->config->http.ports_domain) {
        call_refuse(c, "no_ports_domain", "servers in sandboxes have no hosts of their own here");
        return;
    }
    struct link_claim claim = {.sandbox = live_id(l),
                               .port = (uint16_t)field_int(c->body, "port", 0),
                               .expires = (uint64_t)time(NULL) +
                                          (uint64_t)field_int(c->body, "ttl_seconds", LINK_TTL)};
    snprintf(claim.key, sizeof claim.key, "%s", c->who.key);
    if (audit_lets(&c->api->audit, &p) < 0) {
        call_problem(c, &p);
        return;
    }
    audit_link(&c->api->audit, &c->who, &claim);
    reply_link(c, &claim);
}

/* ---- what they say ---- */

/* SECURITY: what is passed on is the path as it came. It begins as the route's does, without an
 * escape, or somebody else might see another sandbox or port in it. */
static bool read_target(struct call *c, struct port_target *t) {
    const struct num_rule rule = {"port", 1, 65535};
    const char *raw = http_raw_path(c->req);
    struct err e;
    uint32_t port;
    *t = (struct port_target){.id = c->params[0]};
    char *word = (char *)(uintptr_t)c->params[1]; /* "PORT/PATH", in the call's copy of the path */
    word[strcspn(word, "/")] = '\0';
    if (num_u32(word, &rule, &port, &e) < 0) {
        call_bad_value(c, "use a port from 1 to 65535", "%s", e.text);
        return false;
    }
    t->port = (uint16_t)port;
    int len = snprintf(t->prefix, sizeof t->prefix, "/v1/sandboxes/%s/ports/%s", t->id, word);
    if ((size_t)len >= sizeof t->prefix || strncmp(raw, t->prefix, (size_t)len) != 0 ||
        (raw[len] != '/' && raw[len])) {
        call_refuse(c, "no_route", "there is nothing at this path");
        return false;
    }
    t->path = raw + len;
    return true;
}

/* Without the slash the links of a page would lead past it. */
static void add_slash(struct call *c, const struct port_target *t) {
    const char *query = http_raw_query(c->req);
    AUTO_BUF to = BUF_INIT;
    buf_addf(&to, "%s/%s%s", t->prefix, query ? "?" : "", query ? query : "");
    http_add_header(c->req, "Location", to.data);
    http_reply(c->req, 307, NULL, "", 0);
}

static void do_site(struct call *c) {
    const struct port_target t = {
        .id = c->site.id, .port = c->site.port, .path = http_raw_path(c->req)};
    if (c->site.opens)
        site_open(c);
    else
        port_call_begin(c, &t);
}

static void do_port(struct call *c) {
    struct port_target t;
    if (c->site.is) {
        do_site(c);
        return;
    }
    if (!read_target(c, &t))
        return;
    if (*t.path)
        port_call_begin(c, &t);
    else
        add_slash(c, &t);
}

static const struct schema any_query = {.name = "", .open = true};

#define ERRORS_OF_PORT                                                                             \
    ERRORS_OF_SANDBOX "sandbox_paused sandbox_busy ports_unavailable port_closed port_timeout "    \
                      "port_bad_answer bad_link"

/* ---- routes ---- */

/* clang-format off */
#define PASSED(method, body_type_)                                                                 \
    {{method, "/v1/sandboxes/{id}/ports/{port...}", "Ask a server inside a sandbox",               \
      "sandboxes", NULL, body_type_, 200, "what that server answers", "*/*", &any_query,           \
      .errors = ERRORS_OF_PORT, .passes = true}, do_port}
static const struct route routes[] = {
    {{"GET", "/v1/sandboxes/{id}/ports", "List the ports on which something listens inside",
      "sandboxes", NULL, NULL, 200, "the ports", JSON_TYPE, .gives = &ports_schema,
      .errors = ERRORS_OF_SANDBOX "sandbox_busy ports_unavailable"}, do_ports},
    {{"POST", "/v1/sandboxes/{id}/links", "Make a link that opens a server inside to a browser",
      "sandboxes", &link_schema, NULL, 201, "the link", JSON_TYPE, .gives = &made_schema,
      .errors = ERRORS_OF_SANDBOX "no_ports_domain audit_unavailable"}, do_link, .body_max = 4096},
    PASSED("GET", NULL),
    PASSED("POST", "*/*"),
    PASSED("PUT", "*/*"),
    PASSED("PATCH", "*/*"),
    PASSED("DELETE", "*/*"),
    {{"*", "/v1/sandboxes/{id}/ports/{port...}", .query = &any_query, .passes = true}, do_port, .at_sites = true},
};
/* clang-format on */
const struct route_table ports_routes = ROUTE_TABLE(routes);
