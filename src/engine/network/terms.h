#pragma once
/* From what a request says of the network to terms: read, held against what the operator grants at
 * most, and packed for the gate. */

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct config;
struct json_t;
struct jw;

/* A policy that was granted. */
struct network_terms {
    bool is_none;        /* nothing may be reached */
    uint64_t bytes;      /* that may go through, both ways together; 0: no bound */
    struct buf json;     /* as clients are told of it */
    struct buf packed;   /* for the gate, as net/policy.h encodes it */
    struct buf warnings; /* lines for who is told no policy */
};
void network_terms_free(struct network_terms *t);
/* Those that an earlier server wrote down. What cannot be read any more is nothing, and *e says
 * why; e->code is 0 otherwise. */
struct network_terms *network_terms_of(const char *json, const struct buf *packed, struct err *e);

/* What the operator grants: the settings, read. NULL when they cannot be. */
struct network_rules;
struct network_rules *network_rules_read(const struct config *c, struct err *e);
void network_rules_free(struct network_rules *r);

/* For clients, as JSON: the most that may be granted; the names of the sets there are. */
void network_rules_put(const struct network_rules *r, struct jw *j);
void network_rules_put_sets(const struct network_rules *r, struct jw *j);
/* Whether a key's rules can be read. */
int network_rules_check(const struct network_rules *r, const char *text, struct err *e);

/* `key`: what the key of who asks says as text, or NULL: nothing. NULL with kind
 * "network_rule_invalid" or "network_not_allowed". A string is read as a text. */
struct network_terms *network_terms_read(const struct network_rules *r, const struct json_t *value,
                                         const char *key, struct err *e);
/* The same of a text: JSON, or words with commas. */
struct network_terms *network_terms_parse(const struct network_rules *r, const char *text,
                                          const char *key, struct err *e);
/* The same, and what is refused is unreachable to programs, as if there were no network. */
struct network_terms *network_terms_unreachable(const struct network_rules *r, const char *text,
                                                const char *key, struct err *e);
/* All that is granted. */
struct network_terms *network_terms_most(const struct network_rules *r, const char *key,
                                         struct err *e);
