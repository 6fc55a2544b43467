#pragma once
/* What went through the network of a sandbox, by the rule that let it: as init counts it
 * (I_TRAFFIC, wire/traffic.h), and what of that is of one execution. Embedded in its owner; all
 * zero is none. */

#include "base/schema.h"

#include <stddef.h>
#include <stdint.h>

struct jw;

struct network_row {
    char rule[104];
    uint64_t connections, refused, bytes_out, bytes_in;
};

struct network_used {
    struct network_row *rows; /* owned */
    unsigned n;
};

void network_used_done(struct network_used *u);
/* Init's records, instead of what was there. */
void network_used_take(struct network_used *u, const void *records, size_t len);
/* Takes from each what was before; rows without anything go. */
void network_used_since(struct network_used *u, const struct network_used *before);
uint64_t network_used_bytes(const struct network_used *u);
/* A list, one object a rule: these. */
extern const struct schema network_row_schema;
void network_used_put(const struct network_used *u, struct jw *j);
