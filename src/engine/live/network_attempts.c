/* Attempts of cells and commands to reach a network. The kernel counts them for the sandbox as a
 * whole, so they are told only to one that ran alone from beginning to end: nobody is blamed for
 * what another did. */

#include "engine/live/network_attempts.h"

#include "engine/live/command.h"
#include "engine/live/internal.h"
#include "engine/live/kernel.h"

static unsigned running(const struct live *l) {
    unsigned n = 0;
    for (const struct kernel *k = l->kernels; k; k = k->next)
        n += k->running != NULL;
    for (const struct command *c = l->commands; c; c = c->next)
        n += c->status == COMMAND_RUNNING;
    return n;
}

void network_attempts_begin(struct network_attempts *a, struct live *l) {
    *a = (struct network_attempts){
        .base = sandbox_no_route(l->sandbox), .turn = ++l->turns, .alone = running(l) <= 1};
}

void network_attempts_end(const struct network_attempts *a, const struct live *l,
                          struct denials *to) {
    if (a->alone && a->turn == l->turns && l->sandbox)
        denials_add_network(to, sandbox_no_route(l->sandbox) - a->base);
}
