#pragma once
/* Links that open one thing for whoever has them: what they claim is signed, and kept nowhere. The
 * secret is a file in the state directory, so that links outlive the server that made them. */

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct link_secret {
    uint8_t bytes[32];
};

struct link_claim {
    const char *sandbox; /* borrowed */
    uint16_t port;
    uint64_t expires; /* unix time */
    char key[24];     /* the id of the key that made it; "" for none */
};

/* Reads the file with that name, or makes it. */
#define LINK_SECRET_LINKS "links.key"
#define LINK_SECRET_MCP   "mcp.key"
int link_secret_open(int state_dir, const char *name, struct link_secret *ret, struct err *e);
void link_write(const struct link_secret *s, const struct link_claim *c, struct buf *to);
/* Whether the text is a link to that sandbox and port, of which the rest is read: the caller looks
 * at the time, and for the key. */
bool link_read(const struct link_secret *s, const char *text, size_t len, struct link_claim *c);
