/* /v1/sandboxes/{id}/network: what a live sandbox may reach. The policy is the whole body, both
 * ways; {"network": policy} is taken for it, too. */

#include "api/native/native.h"

#include "api/jobs/cell_job.h"
#include "api/jobs/network_change.h"
#include "api/jobs/network_field.h"
#include "engine/live/live.h"
#include "net/policy_json.h"

#include <jansson.h>
#include <string.h>

/* net/policy_json.h checks it: it may also be a list. */
static const struct field wrapped_fields[] = {
    {.name = "network", .type = FIELD_ANY, .flags = FIELD_REQUIRED, .of = &network_asked_schema},
};
static const struct schema wrapped_schema = {SCHEMA("NetworkMember", wrapped_fields)};
static const struct schema policy_schema = {
    .name = "NetworkChange",
    .unchecked = true,
    ONE_OF(&network_policy_schema, &network_rules_schema, &wrapped_schema)};

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
      "the policy", JSON_TYPE, .gives = &net_policy_schema, .errors = ERRORS_OF_SANDBOX}, do_network},
    {{"PUT", "/v1/sandboxes/{id}/network", "Change what it may reach", "sandboxes", &policy_schema,
      NULL, 200, "the policy, which is in force", JSON_TYPE, .gives = &net_policy_schema,
      .errors = ERRORS_OF_SANDBOX ERRORS_OF_NETWORK}, do_network_put, .body_max = MB},
};
/* clang-format on */
const struct route_table network_routes = ROUTE_TABLE(routes);
