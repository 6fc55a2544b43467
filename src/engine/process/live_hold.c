/* See live_hold.h. */

#include "engine/process/live_hold.h"

#include "base/clock.h"
#include "engine/process/live_state.h"

void live_set_timer(struct live *l) {
    uint64_t at = l->expires_ns;
    if (l->idle_since_ns && l->req.idle_s) {
        uint64_t idle = l->idle_since_ns + l->req.idle_s * SECOND_NS;
        at = !at || idle < at ? idle : at;
    }
    if (at)
        loop_timer(l->engine->loop, &l->timer, at);
    else
        loop_timer_stop(l->engine->loop, &l->timer);
}

bool live_is_held(const struct live *l) {
    return l->held > 0;
}

void live_hold(struct live *l) {
    l->held++;
    l->idle_since_ns = 0;
}

void live_release(struct live *l) {
    if (--l->held == 0) {
        l->idle_since_ns = now_ns();
        if (l->state == LIVE_RUNNING)
            live_set_timer(l);
    }
}
