/* See ws_ready.h.
 *
 * SECURITY: what a peer sends is cheap for it, and may be thousands of frames that each want an
 * answer, on many sockets. All WebSockets together are read for READING_NS in a turn of the loop.
 * Those that are left over come first in the next turn, so each is heard, however much others send.
 */

#include "http/ws_ready.h"

#include "base/clock.h"
#include "base/list.h"
#include "http/ws_internal.h"

#define READING_NS 2000000u /* for all WebSockets in a turn */

void ws_ready_add(struct ws *w) {
    struct http *h = w->req->http;
    if (w->is_ready)
        return;
    w->is_ready = true;
    w->next_ready = NULL;
    *h->ready_end = w;
    h->ready_end = &w->next_ready;
    loop_defer(h->o.loop, &h->read_ready);
}

void ws_ready_remove(struct ws *w) {
    struct http *h = w->req->http;
    if (!w->is_ready)
        return;
    struct ws **at = LIST_FIND(&h->ready, w, next_ready);
    if (h->ready_end == &w->next_ready)
        h->ready_end = at;
    (void)LIST_POP(at, next_ready);
    w->is_ready = false;
}

static void on_read_ready(struct deferred *d) {
    struct http *h = d->arg;
    uint64_t began = now_ns();
    while (h->ready && now_ns() - began < READING_NS) {
        struct ws *w = h->ready;
        ws_ready_remove(w);
        ws_read(w);
    }
    if (h->ready)
        loop_defer(h->o.loop, d);
}

void ws_ready_init(struct http *h) {
    h->ready_end = &h->ready;
    h->read_ready = (struct deferred){.fn = on_read_ready, .arg = h};
}
