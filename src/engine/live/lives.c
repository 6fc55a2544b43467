/* See lives.h. */

#include "engine/live/lives.h"

#include "base/buf.h"
#include "base/list.h"
#include "engine/live/gone.h"
#include "engine/live/keep.h"
#include "engine/live/live.h"
#include "engine/process/live_state.h"

#include <string.h>

#define HEARING_NS 1500000u /* of a turn */

void lives_init(struct engine *g, int state_dir) {
    g->lives = xcalloc(1, sizeof *g->lives);
    g->lives->shared = xcalloc(1, sizeof *g->lives->shared);
    loop_share_init(&g->lives->shared->hearing, g->loop, HEARING_NS);
    g->lives->gone = gone_open(state_dir);
    g->on_kept = live_adopt;
}

void lives_leave(struct live *l) {
    LIST_REMOVE(&l->engine->lives->first, l, next);
}

/* The oldest is the first; before it those that were not made yet. */
void lives_join(struct live *l) {
    struct live **at = &l->engine->lives->first;
    while (*at && (*at)->created <= l->created)
        at = &(*at)->next;
    LIST_PUSH(at, l, next);
}

struct live *live_find(struct engine *g, const char *tenant, const char *id, struct err *e) {
    for (struct live *l = g->lives->first; l; l = l->next) {
        if (l->state == LIVE_RUNNING && strcmp(l->id, id) == 0 &&
            strcmp(l->req.tenant, tenant) == 0)
            return l;
    }
    const char *reason = gone_find(g->lives->gone, tenant, id);
    if (reason)
        err_user(e, "sandbox_gone", "the sandbox is gone: %s", reason);
    else
        err_user(e, "no_such_sandbox", "there is no sandbox %.60s", id);
    return NULL;
}

bool live_name_taken(const struct engine *g, const char *tenant, const char *name,
                     const struct live *except) {
    for (const struct live *l = g->lives->first; l; l = l->next) {
        if (l != except && l->state != LIVE_ENDED && l->req.name &&
            strcmp(l->req.name, name) == 0 && strcmp(l->req.tenant, tenant) == 0)
            return true;
    }
    return false;
}

struct live *live_next(struct engine *g, const char *tenant, const struct live *l) {
    struct live *next = l ? l->next : g->lives->first;
    while (next &&
           (next->state != LIVE_RUNNING || (tenant && strcmp(next->req.tenant, tenant) != 0)))
        next = next->next;
    return next;
}
