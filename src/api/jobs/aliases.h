#pragma once
/* A tenant's live sandboxes that a dialect calls by names of its own: made when they are first
 * used. They are live sandboxes like all others; what they are called is kept with them (the alias
 * of live.h), over a restart of the server, and nobody can change it. For api/ only. */

#include "api/core/call.h"
#include "engine/live/live.h"

#define ALIAS_MAX 200 /* bytes of a name */

/* Fills in what is asked for; tenant, alias and quota are set. -1 with a problem. */
typedef int alias_fill(struct call *c, struct live_request *q, struct problem *p);
/* The call's state is free for the handler again. `l` is borrowed for this turn of the loop. */
typedef void alias_fn(struct call *c, struct live *l);

/* One that is there and ready, or NULL. */
struct live *alias_find(struct engine *g, const char *tenant, const char *dialect,
                        const char *name);
/* `then` with it, at once or when it is ready: made if there is none, once for all who ask
 * meanwhile. Otherwise the client has its reply. A body must not have been taken before this, or is
 * on hold (http_hold). A sandbox is made to its end even if all who asked for it leave. */
void alias_use(struct call *c, const char *dialect, const char *name, alias_fill *fill,
               alias_fn *then);
/* The same, but makes none: `then` gets NULL. */
void alias_when(struct call *c, const char *dialect, const char *name, alias_fn *then);
/* Whether there is one, or is about to be. */
bool alias_is_taken(const struct call *c, const char *dialect, const char *name);
/* The dialect's name of a sandbox; NULL when it is not one of its own. */
const char *alias_name(const struct live *l, const char *dialect);
