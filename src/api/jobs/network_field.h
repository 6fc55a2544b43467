#pragma once
/* What a request says of the network: its field `network`, read and held against what the server
 * and the key of who asks grant at most. For api/ only. */

#include "api/core/caller.h"
#include "api/core/problem.h"
#include "engine/network/terms.h"
#include "http/fields.h"

#define FIELD_OF_NETWORK(text)                                                                     \
    {                                                                                              \
        .name = "network", .type = FIELD_ANY, .of = &network_asked_schema, .fallback = "\"none\"", \
        .help = (text)                                                                             \
    }
/* A policy as a request may say it; of that the object, and the list of rules. */
extern const struct schema network_asked_schema, network_policy_schema, network_rules_schema;

/* What the key of who asks grants at most, as text; NULL: all that the server does. */
const char *network_of_key(const struct caller *who);
/* *ret, the caller's, is NULL where the body says nothing, or "none". */
int network_read(const struct caller *who, const json_t *body, struct network_terms **ret,
                 struct problem *p);
/* The same of a value of its own; NULL after a refusal, and never where it is "none". */
struct network_terms *network_of_value(const struct caller *who, const json_t *value,
                                       struct problem *p);
struct network_terms *network_of_text(const struct caller *who, const char *text,
                                      struct problem *p);
/* With `refuse: "unreachable"`. */
struct network_terms *network_unreachable_of(const struct caller *who, const char *text,
                                             struct problem *p);
/* All that may be had; *ret is NULL where that is nothing. */
int network_all(const struct caller *who, struct network_terms **ret, struct problem *p);
