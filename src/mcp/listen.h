#pragma once
/* Streams of changes: a modern client's subscriptions/listen, and the GET of a legacy one. For this
 * directory only. What is told: mcp_changed and mcp_updated (server.h). */

#include <stdbool.h>

struct mcp_call;
struct visit;
struct listener;

#define LISTENERS_MAX 1000 /* of all; an owner has a tenth */
#define LISTEN_URIS   100  /* in one */

/* Answers the call by opening a stream, or with an error. */
void listen_modern(struct mcp_call *c, struct visit *v);
/* False: there is nothing to listen to, or no room. */
bool listen_legacy(struct visit *v);
/* The client has left. */
void listen_left(struct listener *l);
