/* Attempts of cells and commands to reach a network. The kernel counts them for the sandbox as a
 * whole, so they are told only to one that ran alone from beginning to end: nobody is blamed for
 * what another did. */

#include "engine/process/network_attempts.h"

#include "engine/process/live_state.h"

void network_attempts_begin(struct network_attempts *a, struct live *l) {
    *a = (struct network_attempts){
        .base = sandbox_no_route(l->sandbox), .turn = ++l->turns, .alone = l->running <= 1};
}

void network_attempts_end(const struct network_attempts *a, const struct live *l,
                          struct denials *to) {
    if (a->alone && a->turn == l->turns && l->sandbox)
        denials_add_network(to, sandbox_no_route(l->sandbox) - a->base);
}
