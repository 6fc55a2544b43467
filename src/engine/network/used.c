/* See used.h. */

#include "engine/network/used.h"

#include "base/json.h"
#include "wire/traffic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_MAX (TRAFFIC_RULES + 1)

void network_used_done(struct network_used *u) {
    free(u->rows);
    *u = (struct network_used){0};
}

static struct network_row *row_of(const struct network_used *u, const char *rule) {
    for (unsigned i = 0; i < u->n; i++)
        if (strcmp(u->rows[i].rule, rule) == 0)
            return &u->rows[i];
    return NULL;
}

void network_used_take(struct network_used *u, const void *records, size_t len) {
    const uint8_t *at = records, *end = at + len;
    struct traffic t;
    network_used_done(u);
    while (u->n < ROWS_MAX && traffic_get(&at, end, &t)) {
        u->rows = xrealloc(u->rows, (u->n + 1) * sizeof *u->rows);
        struct network_row *r = &u->rows[u->n++];
        *r = (struct network_row){.connections = t.connections,
                                  .refused = t.refused,
                                  .bytes_out = t.bytes_out,
                                  .bytes_in = t.bytes_in};
        snprintf(r->rule, sizeof r->rule, "%s", t.rule);
    }
}

static uint64_t beyond(uint64_t a, uint64_t b) {
    return a > b ? a - b : 0;
}

void network_used_since(struct network_used *u, const struct network_used *before) {
    unsigned n = 0;
    for (unsigned i = 0; i < u->n; i++) {
        struct network_row r = u->rows[i];
        const struct network_row *b = row_of(before, r.rule);
        if (b) {
            r.connections = beyond(r.connections, b->connections);
            r.refused = beyond(r.refused, b->refused);
            r.bytes_out = beyond(r.bytes_out, b->bytes_out);
            r.bytes_in = beyond(r.bytes_in, b->bytes_in);
        }
        if (r.connections || r.refused || r.bytes_out || r.bytes_in)
            u->rows[n++] = r;
    }
    u->n = n;
}

uint64_t network_used_bytes(const struct network_used *u) {
    uint64_t sum = 0;
    for (unsigned i = 0; i < u->n; i++)
        sum += u->rows[i].bytes_out + u->rows[i].bytes_in;
    return sum;
}

static const struct field row_fields[] = {
    HAS("rule", FIELD_STRING),   HAS("connections", FIELD_INT), HAS("refused", FIELD_INT),
    HAS("bytes_out", FIELD_INT), HAS("bytes_in", FIELD_INT),
};
const struct schema network_row_schema = {SCHEMA("NetworkUse", row_fields),
                                          .help = "what a rule of the network let through"};

void network_used_put(const struct network_used *u, struct jw *j) {
    jw_array(j);
    for (unsigned i = 0; i < u->n; i++) {
        const struct network_row *r = &u->rows[i];
        jw_object(j);
        jw_key_str(j, "rule", r->rule);
        jw_key_uint(j, "connections", r->connections);
        jw_key_uint(j, "refused", r->refused);
        jw_key_uint(j, "bytes_out", r->bytes_out);
        jw_key_uint(j, "bytes_in", r->bytes_in);
        jw_object_end(j);
    }
    jw_array_end(j);
}
