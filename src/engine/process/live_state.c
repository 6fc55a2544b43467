/* See live_state.h. */

#include "engine/process/live_state.h"

#include "base/clock.h"

#define WRITE_NS 20000000u /* between two times that the journal is written for a kernel's sake */

/* Several changes of one moment are written once. */
void live_changed(struct live *l) {
    if (l->state != LIVE_RUNNING)
        return;
    l->unwritten = l->shared->unwritten = true;
    loop_defer(l->engine->loop, &l->write_later);
}

void live_changed_lately(struct live *l) {
    uint64_t now = now_ns(), at = l->hurried_ns + WRITE_NS;
    if (now >= at) {
        l->hurried_ns = now;
        live_changed(l);
    } else if (l->state == LIVE_RUNNING && !l->write_timer.place) {
        loop_timer(l->engine->loop, &l->write_timer, at);
    }
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
