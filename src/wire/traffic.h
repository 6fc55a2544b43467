#pragma once
/* What went through a sandbox's network by one rule: records in init's answer to I_TRAFFIC. */

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

#define TRAFFIC_RULES 64 /* records for rules; what is more than that is in one of the others */
#define TRAFFIC_OTHER "other" /* the rule of these */

struct traffic {
    const char *rule; /* borrowed; at most WIRE_RULE bytes */
    uint64_t connections, refused, bytes_out, bytes_in;
};

void traffic_put(struct buf *to, const struct traffic *t);
/* The record at *at, which moves behind it; its string lies in it. False when there is none. */
bool traffic_get(const uint8_t **at, const uint8_t *end, struct traffic *ret);
