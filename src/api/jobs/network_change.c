/* See network_change.h. */

#include "api/jobs/network_change.h"

#include "engine/live/live.h"

#include <stdlib.h>

/* The state of a call that waits. */
struct network_changing {
    struct call *call;
    struct live *live; /* borrowed; NULL when it has ended */
    struct live_watcher watcher;
    void (*reply)(struct call *c, struct live *l);
};

static void network_change_free(struct network_changing *w) {
    live_unwatch(&w->watcher);
    free(w);
}

static void network_change_over(struct network_changing *w, const struct err *why) {
    struct call *c = w->call;
    struct live *l = w->live;
    void (*reply)(struct call * c, struct live * l) = w->reply;
    c->state = NULL;
    c->state_done = NULL;
    network_change_free(w);
    if (why)
        call_fail(c, why);
    else
        reply(c, l);
}

static void network_change_on_done(void *arg, const struct err *why) {
    network_change_over(arg, why);
}

static void network_change_on_end(struct live_watcher *watcher, const struct err *why) {
    network_change_over(watcher->arg, why);
}

/* The client is gone; the change is not taken back. */
static void network_change_leave(void *state) {
    struct network_changing *w = state;
    live_network_leave(w->live, w);
    network_change_free(w);
}

void network_change(struct call *c, struct live *l, struct network_terms **t,
                    void (*reply)(struct call *c, struct live *l)) {
    struct network_changing *w = xcalloc(1, sizeof *w);
    struct err e;
    *w = (struct network_changing){.call = c, .live = l, .reply = reply};
    w->watcher = (struct live_watcher){.on_end = network_change_on_end, .arg = w};
    int r = live_network_set(l, t, network_change_on_done, w, &e);
    if (r > 0) {
        c->state = w;
        c->state_done = network_change_leave;
        live_watch(l, &w->watcher);
        return;
    }
    free(w);
    if (r < 0)
        call_fail(c, &e);
    else
        reply(c, l);
}
