#pragma once
/* What went through the network, by rule. */

#include "base/buf.h"
#include "wire/messages.h"
#include "wire/traffic.h"

struct network;

struct traffic_table {
    unsigned n;
    struct {
        char rule[WIRE_RULE + 1];
        uint64_t connections, refused, bytes_out, bytes_in; /* of those that ended */
    } all[TRAFFIC_RULES + 1];
};

/* The number of a rule's account. */
unsigned traffic_account(struct traffic_table *t, const char *rule);
/* Records of wire/traffic.h, with what is open counted in. */
void traffic_write(const struct network *n, struct buf *to);
