/* See live_state.h. */

#include "engine/process/live_state.h"

/* Several changes of one moment are written once. */
void live_changed(struct live *l) {
    if (l->state != LIVE_RUNNING)
        return;
    l->unwritten = l->shared->unwritten = true;
    loop_defer(l->engine->loop, &l->write_later);
}

void live_said(struct live *l) {
    if (l->told)
        ++*l->told;
}

bool live_ask(struct live *l, const struct wire_out *o, void (*fn)(void *arg, struct wire_in *in),
              void *arg) {
    if (!l->sandbox || l->sandbox->nasked >= SANDBOX_MOST_ASKED)
        return false;
    return sandbox_ask_for(l->sandbox, o, fn, arg);
}

void live_unask(struct live *l, const void *arg) {
    if (l->sandbox)
        sandbox_unask(l->sandbox, arg);
}
