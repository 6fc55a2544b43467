/* See network_field.h. */

#include "api/jobs/network_field.h"

#include "api/core/api_state.h"

#include <string.h>

/* It may be another one since, or gone: then it grants nothing. */
/* ---- what it may be: net/policy_json.h reads it ---- */

static const struct schema text_schema = {"NetworkText", .value = &(struct field){0},
                                          .help = "none, open, or rules between spaces"};
static const struct field rule_fields[] = {
    {.name = "domain", .help = "a name, or *.NAME"},
    {.name = "address"},
    {.name = "cidr"},
    {.name = "ports",
     .type = FIELD_LIST,
     .flags = FIELD_OR_INT,
     .help = "numbers, or \"FROM-TO\"; any, unless given"},
};
static const struct schema rule_object = {SCHEMA("NetworkRuleObject", rule_fields)};
static const struct schema rule_text = {"NetworkRuleText", .value = &(struct field){0}};
static const struct schema rule_schema = {"NetworkRule", ONE_OF(&rule_text, &rule_object)};

const struct schema network_rules_schema = {SCHEMA_OF_LIST("NetworkRuleList", rule_schema)};

static const struct field policy_fields[] = {
    {.name = "allow",
     .type = FIELD_LIST,
     .of = &rule_schema,
     .help = "names, addresses and sets, with ports or without"},
    {.name = "deny", .type = FIELD_LIST, .help = "addresses that are refused all the same"},
    {.name = "open", .type = FIELD_BOOL, .help = "every address that is not closed"},
    {.name = "strict_tls",
     .type = FIELD_BOOL,
     .fallback = "true",
     .help = "TLS and HTTP must say a name that is allowed"},
    {.name = "refuse",
     .type = FIELD_STRING,
     WORDS("denied", "unreachable"),
     .fallback = "\"denied\"",
     .help = "unreachable: as if there were no network"},
    {.name = "connections", .type = FIELD_INT, .fallback = "256", .help = "open at once"},
    {.name = "bytes", .type = FIELD_INT, .help = "both ways together, then connections end"},
    {.name = "broad",
     .type = FIELD_LIST,
     .help = "in replies: the rules that are for names of everybody, as *.com"},
};
const struct schema network_policy_schema = {SCHEMA("NetworkPolicy", policy_fields)};

const struct schema network_asked_schema = {
    "NetworkAsked", ONE_OF(&text_schema, &network_policy_schema, &network_rules_schema)};

const char *network_of_key(const struct caller *who) {
    if (!who->key[0])
        return NULL;
    const struct keys *all = &who->api->keys;
    unsigned i = 0;
    while (i < all->n && strcmp(all->items[i].id, who->key) != 0)
        i++;
    return i < all->n ? all->items[i].network : "none";
}

struct network_terms *network_of_value(const struct caller *who, const json_t *value,
                                       struct problem *p) {
    struct err e;
    struct network_terms *t =
        network_terms_read(who->api->o.engine->network, value, network_of_key(who), &e);
    if (!t)
        *p = problem_of(&e);
    return t;
}

struct network_terms *network_of_text(const struct caller *who, const char *text,
                                      struct problem *p) {
    struct err e;
    struct network_terms *t =
        network_terms_parse(who->api->o.engine->network, text, network_of_key(who), &e);
    if (!t)
        *p = problem_of(&e);
    return t;
}

struct network_terms *network_unreachable_of(const struct caller *who, const char *text,
                                             struct problem *p) {
    struct err e;
    struct network_terms *t =
        network_terms_unreachable(who->api->o.engine->network, text, network_of_key(who), &e);
    if (!t)
        *p = problem_of(&e);
    return t;
}

/* Whoever may reach nothing has no network, from the first. */
static void take_some(struct network_terms *t, struct network_terms **ret) {
    *ret = t->is_none ? NULL : t;
    if (t->is_none)
        network_terms_free(t);
}

int network_all(const struct caller *who, struct network_terms **ret, struct problem *p) {
    struct err e;
    struct network_terms *t =
        network_terms_most(who->api->o.engine->network, network_of_key(who), &e);
    *ret = NULL;
    if (t) {
        take_some(t, ret);
        return 0;
    }
    *p = problem_of(&e);
    return -1;
}

int network_read(const struct caller *who, const json_t *body, struct network_terms **ret,
                 struct problem *p) {
    const json_t *value = json_object_get(body, "network");
    *ret = NULL;
    if (!value || json_is_null(value))
        return 0;
    struct network_terms *t = network_of_value(who, value, p);
    if (!t)
        return -1;
    take_some(t, ret);
    return 0;
}
