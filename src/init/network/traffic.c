/* See traffic.h. */

#include "init/network/traffic.h"

#include "init/network/network.h"

#include <stdio.h>
#include <string.h>

unsigned traffic_account(struct traffic_table *t, const char *rule) {
    for (unsigned i = 0; i < t->n; i++) {
        if (strcmp(t->all[i].rule, rule) == 0)
            return i;
    }
    if (t->n == TRAFFIC_RULES + 1)
        return TRAFFIC_RULES;
    snprintf(t->all[t->n].rule, sizeof t->all[t->n].rule, "%s",
             t->n == TRAFFIC_RULES ? TRAFFIC_OTHER : rule);
    return t->n++;
}

void traffic_write(const struct network *n, struct buf *to) {
    for (unsigned a = 0; a < n->traffic.n; a++) {
        struct traffic sum = {.rule = n->traffic.all[a].rule,
                              .connections = n->traffic.all[a].connections,
                              .refused = n->traffic.all[a].refused,
                              .bytes_out = n->traffic.all[a].bytes_out,
                              .bytes_in = n->traffic.all[a].bytes_in};
        for (unsigned i = 0; i < n->top; i++) {
            if (n->links[i].state != LINK_RELAYED || n->links[i].account != a)
                continue;
            sum.bytes_out += n->usher.page->slots[i].out;
            sum.bytes_in += n->usher.page->slots[i].in;
        }
        traffic_put(to, &sum);
    }
}
