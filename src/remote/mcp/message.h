#pragma once
/* A message of the client, as far as its way to the server depends on what it says: which era of
 * the protocol it belongs to (the modern one says so in each message), what it asks, and the
 * headers that repeat this. What else is wrong with a message is the server's to tell. */

#include "base/buf.h"
#include "base/err.h"

#include <jansson.h>
#include <stdbool.h>

#define MCP_VERSION_MAX 32

struct message {
    json_t *root;       /* owned: an object, or an array of them (a batch) */
    const json_t *id;   /* of a request; or NULL */
    const char *method; /* "" when it has none: an answer, or nonsense */
    const char *name;   /* of what is called, read or got; or NULL */
    bool is_modern;
    char version[MCP_VERSION_MAX]; /* of a modern one */
};
#define AUTO_MESSAGE __attribute__((cleanup(message_done))) struct message

int message_read(const char *text, size_t len, struct message *ret, struct err *e);
void message_done(struct message *m);
/* One line "Mcp-Name: VALUE"; what is no plain ASCII goes as base64. */
void message_header(struct buf *to, const char *header, const char *value);
/* The same member of `params`, or NULL. */
const json_t *message_param(const struct message *m, const char *name);

/* A JSON-RPC error, on one line; id NULL is written as null. */
void message_error(struct buf *to, const json_t *id, int code, const char *text);
/* The same where the id is JSON text; what is no id is written as null. */
void message_error_of(struct buf *to, const char *id, int code, const char *text);

#define MCP_PARSE_ERROR    (-32700)
#define MCP_INVALID        (-32600)
#define MCP_INTERNAL_ERROR (-32603)
