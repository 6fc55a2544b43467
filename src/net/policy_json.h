#pragma once
/* Policies as users write them (library net_json, which needs jansson):
 *
 *   "none"   "open"   ["pypi.org:443", "@npm", "10.1.0.0/16"]
 *   {"open": true, "allow": ["…", {"domain" | "address" | "cidr": "…", "ports": [443,
 * "8000-8010"]}], "deny": ["203.0.113.0/24"], "strict_tls": true, "refuse": "denied" |
 * "unreachable", "connections": 64, "bytes": 1000000}
 *
 * Errors are of kind "network_rule_invalid" and name the entry: "network.allow[3]: …"; `where` is
 * what they begin with. *ret is the caller's (net_policy_done), and NET_NONE after an error. */

#include "base/schema.h"
#include "net/policy.h"
#include "net/sets.h"

struct json_t;
struct jw;

/* `sets` may be NULL: those that are built in. */
int net_policy_from_json(const struct json_t *value, const struct net_sets *sets, const char *where,
                         struct net_policy *ret, struct err *e);
/* A setting, an option, a header: JSON, or "none", "open", or rules with spaces or commas between
 * them ("pypi.org:80,443 @npm"). "" is none. */
int net_policy_from_text(const char *text, size_t len, const struct net_sets *sets,
                         const char *where, struct net_policy *ret, struct err *e);
/* The operator's network_deny: addresses and ranges as a JSON list, or with spaces or commas
 * between them; added to p->operator. */
int net_policy_deny_from_text(const char *text, size_t len, const char *where, struct net_policy *p,
                              struct err *e);

/* One value: "none", "open", or the object, with rules as text, and "broad": those of them that are
 * for names of everybody ("*.com"). What the operator denies is left out. */
extern const struct schema net_policy_schema;
void net_policy_to_json(const struct net_policy *p, struct jw *j);
