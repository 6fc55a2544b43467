#pragma once
/* Legacy sessions. Their id is a text with our MAC, which says what the client can do; so a server
 * that was restarted knows it again. What few of them have besides (ended, a level of logs, watched
 * resources) is remembered in a bounded list. For this directory only. */

#include <stdbool.h>

struct mcp;
struct mcp_asker;
struct visit;

#define SESSIONS_MAX    512 /* of which something is remembered; half of them of one owner */
#define SESSION_WATCHES 32

/* The id of a new one, and its name in the asker. */
void session_new(struct visit *v, const char *version, unsigned can, char *ret, unsigned cap);
enum session_found { SESSION_NONE, SESSION_GOOD, SESSION_UNKNOWN };
/* What the request's header names: fills in the visit and its asker. */
enum session_found session_find(struct visit *v, const char *id);
void session_end(struct visit *v);

int session_level(const struct mcp *m, const struct mcp_asker *who); /* 0: everything */
void session_set_level(struct mcp *m, const struct mcp_asker *who, int level);
/* False: it watches too many. */
bool session_watch(struct mcp *m, const struct mcp_asker *who, const char *uri, bool on);
bool session_watches(const struct mcp *m, const struct mcp_asker *who, const char *uri);
