#pragma once
/* JSON-RPC 2.0 as MCP uses it: messages read from bytes, for servers and clients alike, and the
 * beginnings of those that are written.
 *
 * SECURITY: a message has at most RPC_MAX bytes, JSON_DEPTH_MAX levels and RPC_VALUES_MAX values;
 * duplicate keys, NUL and ill-formed UTF-8 are refused. Reading the largest takes tens of
 * milliseconds: whoever has a loop reads what is not rpc_is_small beside it. */

#include "base/json.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define RPC_MAX        (4u << 20)
#define RPC_SHORT      (64u << 10)
#define RPC_FEW        500 /* values of a message that is read at once */
#define RPC_VALUES_MAX 50000
#define RPC_BATCH_MAX  16
#define RPC_ID_MAX     256 /* bytes of an id that is a string */

enum rpc_code {
    RPC_PARSE = -32700,
    RPC_INVALID = -32600,
    RPC_NO_METHOD = -32601,
    RPC_PARAMS = -32602,
    RPC_INTERNAL = -32603,
    RPC_NO_RESOURCE = -32002, /* before 2026-07-28 */
    RPC_HEADER = -32020,
    RPC_CAPABILITY = -32021,
    RPC_VERSION = -32022,
};

enum rpc_kind { RPC_REQUEST, RPC_NOTIFICATION, RPC_RESPONSE, RPC_BAD };

/* One message. What it points to is borrowed from the tree. */
struct rpc {
    enum rpc_kind kind;
    const char *method;     /* of a request or notification */
    json_t *id;             /* of a request or response: a string or an integer; or NULL */
    json_t *params;         /* an object, or NULL */
    json_t *result, *error; /* of a response: one of them */
    const char *wrong;      /* RPC_BAD: a constant */
    enum rpc_code code;     /* and which error that is */
};

bool rpc_is_small(const char *text, size_t len);
/* The tree of one message or of a batch, which is the caller's; NULL and a sentence. */
json_t *rpc_parse(const char *text, size_t len, struct err *e);
/* What one message is. */
struct rpc rpc_read(json_t *message);

/* A message as it begins; the caller goes on inside of the object and calls rpc_end. */
void rpc_begin_request(struct jw *j, const char *id, const char *method);
void rpc_begin_notification(struct jw *j, const char *method);
void rpc_begin_response(struct jw *j, const json_t *id);
void rpc_end(struct jw *j);
/* A whole error response; `id` NULL: it has none; `data` is JSON or NULL. */
void rpc_error(struct buf *to, const json_t *id, int code, const char *message, const char *data);
