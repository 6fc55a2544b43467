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

/* The same for those who may outlive their request. Embedded in its owner, who sets `then`, and
 * leaves before it goes. */
struct alias_seeker {
    struct alias_seeker *next;
    struct alias *of; /* the one that it waits for; or NULL */
    /* Once: with the sandbox, or with NULL and the reason. It waits no more, and may be gone. */
    void (*then)(struct alias_seeker *s, struct live *l, const struct problem *why);
};
/* Fills in what `arg` asks for, before alias_seek returns. */
typedef int alias_filler(void *arg, struct live_request *q, struct problem *p);
struct alias_wanted {
    const struct caller *who;
    const char *dialect, *name; /* at most ALIAS_MAX bytes */
    alias_filler *fill;         /* NULL: none is made, and `then` may get NULL and no reason */
    void *arg;
};
/* `then` may come before it returns. True when the sandbox was not there, and no other one was
 * being made. */
bool alias_seek(struct alias_seeker *s, const struct alias_wanted *w);
/* Also when it does not wait. */
void alias_leave(struct alias_seeker *s);
