#pragma once
/* The live sandbox that a call means: by the name in its argument `sandbox`, else by the URL, the
 * session, or `default`. Names are a tenant's, but for `default`, which is a key's own; a sandbox
 * is made when its name is first used. For api/ only. */

#include "api/core/problem.h"
#include "api/mcp/who.h"
#include "engine/live/live.h"

/* The argument itself, for tables of fields. */
#define FIELD_OF_SANDBOX                                                                           \
    {                                                                                              \
        .name = "sandbox", .type = FIELD_STRING, .wrong = place_wrong,                             \
        .help = "name of the sandbox (letters, digits, -); it is made when first used"             \
    }
const char *place_wrong(const json_t *name);
/* NULL, or what may be a name. */
const char *place_name_wrong(const char *name);

/* Where sandboxes are known by names (jobs/aliases.h): journals hold these, so they stay. */
#define PLACE_KEPT_AS "mcp"
#define PLACE_DEFAULT "default"
void place_kept_name(const struct mcp_who *w, const char *name, char *to, size_t cap);

/* The name that is meant. */
const char *place_name(const struct mcp_call *c);
/* `then` with the sandbox, at once or when it is ready; it is borrowed for this turn of the loop.
 * If none can be had, the call has its answer and `then` is not called. Nothing is kept with the
 * call before that. */
typedef void place_fn(struct mcp_call *c, struct live *l);
void place_use(struct mcp_call *c, place_fn *then);
/* What the model should know of a sandbox that this call made, as a line behind its text. */
void place_news(const struct mcp_call *c, struct buf *to);
/* The one that is there and ready, or NULL: none is made, nothing is answered. */
struct live *place_find(const struct mcp_call *c, const char *name);
/* The sandboxes that the call can name: the first, and the one after `l`; their names. */
struct live *place_next(const struct mcp_call *c, const struct live *l);
const char *place_name_of(const struct live *l);
/* The client has ended its legacy session: the sandbox that was the session's own goes. */
void place_session_over(const struct mcp_asker *who);

/* An error of the engine or a problem, as isError: one sentence, and what to do. */
void place_fail(struct mcp_call *c, const struct err *e);
void place_problem(struct mcp_call *c, const struct problem *p);
