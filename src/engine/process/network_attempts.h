#pragma once
/* Attempts of cells and commands to reach a network. The kernel counts them for the sandbox as a
 * whole, so they are told only to one that ran alone from beginning to end: nobody is blamed for
 * what another did. */

#include "engine/core/denials.h"
#include "engine/network/used.h"

struct live;

struct network_attempts {
    uint64_t base; /* those of the sandbox before */
    uint64_t turn; /* its number among those that began in this sandbox; 0: it began under an
                      earlier server */
    bool alone;    /* nobody else ran then */
    struct network_used before; /* what went through the sandbox's network by then */
};
/* A cell or a command begins, and is over. */
void network_attempts_begin(struct network_attempts *a, struct live *l);
void network_attempts_end(const struct network_attempts *a, const struct live *l,
                          struct denials *to);
/* A cell begins, or is taken over from an earlier server: asks for `before`, until it is done. */
void network_attempts_ask(struct network_attempts *a, struct live *l);
void network_attempts_done(struct network_attempts *a, struct live *l);
