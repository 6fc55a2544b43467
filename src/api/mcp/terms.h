#pragma once
/* What the URL of an MCP client says: which tools, which sandbox, and what a sandbox that is made
 * for it is like: ?tools=&sandbox=&profile=&network=&memory_mb=&…, within what the key may have.
 * What it does not say is in the settings (mcp_profile, mcp_network). For api/ only. */

#include "api/core/call.h"
#include "api/mcp/who.h"

struct live;
struct live_request;

/* For the row of the route. */
extern const struct schema terms_query;

/* All of it, and what the header Cloche-Sandbox says, into `w`, whose caller is known; -1 with a
 * problem. */
int terms_read(const struct call *c, struct mcp_who *w, struct problem *p);
/* The word of ?tools=; false: it is none. */
bool terms_sets(const char *text, unsigned *ret);

/* For a sandbox that is made. */
int terms_fill(const struct mcp_who *w, struct live_request *q, struct problem *p);
/* Whether one that is there is what the URL asks for; otherwise -1 and what is different. */
int terms_check(const struct mcp_who *w, const struct live *l, const char *name, struct problem *p);

bool terms_has_network(const struct mcp_who *w);
