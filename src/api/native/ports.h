#pragma once
/* Servers inside live sandboxes, for their clients; see ports.c. For native/port*.c only. */

#include "api/core/call.h"
#include "engine/live/live.h"
#include "http/answer.h"

/* Which server is meant, and what of it. */
struct port_target {
    const char *id; /* borrowed from the call, as the path: of the sandbox */
    uint16_t port;
    const char *path;         /* as it came, from the first slash on */
    char prefix[ID_MAX + 40]; /* what stands before it; "" on an origin of its own */
};

/* port_call.c: passes the request on, and the answer back. */
void port_call_begin(struct call *c, const struct port_target *t);
/* port_head.c. The request as the server inside gets it; `upgrade`: to that protocol, or NULL. */
void port_head_request(const struct call *c, const struct port_target *t, const char *upgrade,
                       struct buf *to);
/* The protocol that the request wants to speak; NULL: it stays HTTP. */
const char *port_head_upgrade(const struct call *c);
/* Adds what of the answer's head the client gets to the reply. */
void port_head_reply(struct call *c, const struct port_target *t, const struct answer *a);
