/* /v1/sandboxes/{id}/network: what a live sandbox may reach. The policy is the whole body, both
 * ways; {"network": policy} is taken for it, too. */

#include "api/native/native.h"

#include "api/jobs/cell_job.h"
#include "api/jobs/network_change.h"
#include "engine/live/live.h"

#include <jansson.h>
#include <string.h>

static const struct field policy_fields[] = {
    {.name = "allow",
     .type = FIELD_LIST,
     .help = "names, addresses and sets, with ports or without"},
    {.name = "deny", .type = FIELD_LIST, .help = "addresses that are refused all the same"},
    {.name = "open", .type = FIELD_BOOL, .help = "every address that is not closed"},
    {.name = "strict_tls",
     .type = FIELD_BOOL,
     .fallback = "true",
     .help = "TLS and HTTP must say a name that is allowed"},
    {.name = "refuse",
     .type = FIELD_STRING,
     .fallback = "\"denied\"",
     .help = "unreachable: as if there were no network"},
    {.name = "connections", .type = FIELD_INT, .fallback = "256", .help = "open at once"},
    {.name = "bytes", .type = FIELD_INT, .help = "both ways together, then connections end"},
    {.name = "broad",
     .type = FIELD_LIST,
     .help = "in replies: the rules that are for names of everybody, as *.com"},
};
/* net/policy_json.h checks it: it may also be a string or a list. */
static const struct schema policy_schema = {
    .name = "NetworkPolicy", .fields = policy_fields, .n = 8, .unchecked = true};

static void reply_network(struct call *c, struct live *l) {
    AUTO_BUF json = BUF_INIT;
    buf_adds(&json, live_network(l));
    call_json(c, 200, &json);
}

static void do_network(struct call *c) {
    struct live *l = call_live(c);
    if (l)
        reply_network(c, l);
}

static const json_t *policy_of(const json_t *body) {
    const json_t *inner = json_object_get(body, "network");
    return inner && json_object_size(body) == 1 ? inner : body;
}

static void do_network_put(struct call *c) {
    struct live *l = call_live(c);
    struct problem p;
    if (!l)
        return;
    struct network_terms *t = network_of_value(&c->who, policy_of(c->body), &p);
    if (t)
        network_change(c, l, &t, reply_network);
    else
        call_problem(c, &p);
    network_terms_free(t); /* NULL when they were taken */
}

/* clang-format off */
static const struct route routes[] = {
    {{"GET", "/v1/sandboxes/{id}/network", "What it may reach", "sandboxes", NULL, NULL, 200,
      "the policy", JSON_TYPE}, do_network},
    {{"PUT", "/v1/sandboxes/{id}/network", "Change what it may reach", "sandboxes", &policy_schema,
      NULL, 200, "the policy, which is in force", JSON_TYPE}, do_network_put, .body_max = MB},
};
/* clang-format on */
const struct route_table network_routes = ROUTE_TABLE(routes);
