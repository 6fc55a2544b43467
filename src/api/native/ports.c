/* Servers inside a live sandbox: /v1/sandboxes/{id}/ports, which there are, and …/ports/{port}/…,
 * whatever they say. port_call.c passes one request on, port_head.c writes the heads. */

#include "api/native/ports.h"

#include "api/jobs/cell_job.h"
#include "api/native/native.h"
#include "base/num.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static void do_port(struct call *c) {
    struct port_target t;
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
                      "port_bad_answer"

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
    PASSED("GET", NULL),
    PASSED("POST", "*/*"),
    PASSED("PUT", "*/*"),
    PASSED("PATCH", "*/*"),
    PASSED("DELETE", "*/*"),
    {{"*", "/v1/sandboxes/{id}/ports/{port...}", .query = &any_query, .passes = true}, do_port},
};
/* clang-format on */
const struct route_table ports_routes = ROUTE_TABLE(routes);
