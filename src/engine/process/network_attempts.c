/* Attempts of cells and commands to reach a network. The kernel counts them for the sandbox as a
 * whole, so they are told only to one that ran alone from beginning to end: nobody is blamed for
 * what another did. */

#include "engine/process/network_attempts.h"

#include "engine/process/live_state.h"

static void attempts_on_before(void *arg, struct wire_in *in) {
    struct network_attempts *a = arg;
    network_read_used(in, &a->before);
}

void network_attempts_ask(struct network_attempts *a, struct live *l) {
    network_ask_used(l->sandbox, attempts_on_before, a);
}

void network_attempts_done(struct network_attempts *a, struct live *l) {
    if (l->sandbox)
        sandbox_unask(l->sandbox, a);
    network_used_done(&a->before);
}

void network_attempts_begin(struct network_attempts *a, struct live *l) {
    *a = (struct network_attempts){
        .base = sandbox_no_route(l->sandbox), .turn = ++l->turns, .alone = l->running <= 1};
}

void network_attempts_end(const struct network_attempts *a, const struct live *l,
                          struct denials *to) {
    uint64_t now = l->sandbox ? sandbox_no_route(l->sandbox) : 0;
    if (a->alone && a->turn == l->turns && now > a->base) /* less: it got a network meanwhile */
        denials_add_network(to, now - a->base);
}
