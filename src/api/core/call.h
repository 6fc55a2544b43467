#pragma once
/* A request on its way through the API: what it asks for, who asks, and how to answer. For api/
 * only.
 */

#include "api/core/api_state.h"
#include "api/core/caller.h"
#include "api/core/problem.h"
#include "base/id.h"
#include "base/json.h"
#include "http/fields.h"

struct body;
struct field_fault;
struct tenant_use;

#define CALL_PARAMS 2
struct call {
    struct api *api;
    struct http_req *req;
    const struct route *route;
    const struct dialect *dialect; /* whose the route is; NULL: the native API's */
    struct caller who;
    const char *params[CALL_PARAMS]; /* {…} of the path */
    char *path_copy;                 /* owned */
    json_t *body;                    /* owned: checked against the route's table, or NULL */
    struct body *large;              /* owned: where `body` is from, if that was large; or NULL */
    struct {
        bool is;         /* it is for a host of its own; see sites.h */
        bool opens;      /* with a link, for */
        uint64_t left_s; /* seconds */
        uint16_t port;
        char id[ID_MAX];
    } site;
    struct tenant_use *use;          /* borrowed: what its tenant holds, this one too; or NULL */
    bool counted;                    /* holds a place of the key's concurrent ones */
    void *state;                     /* of the handler */
    void (*state_done)(void *state); /* when the request is over */
};

void call_problem(struct call *c, const struct problem *p);
/* Counts a 429 or 503 that is told in another way than by call_problem. */
void call_refused(struct api *a, const struct problem *p);
/* The reply for an error of that kind (problem.h). */
void call_refuse(struct call *c, const char *code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The reply for a bad_value, with a remedy of its own. */
void call_bad_value(struct call *c, const char *remediation, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The reply for an error of the engine or the store. */
void call_fail(struct call *c, const struct err *e);
void call_json(struct call *c, int status, const struct buf *json);
/* A parameter of the query, which the row of the route has in its table: no other is read. Or NULL.
 */
const char *call_query(const struct call *c, const char *name);
/* Whether the request is the handshake of a WebSocket; otherwise it was answered. `instead` is what
 * can be done without one. */
bool call_is_websocket(struct call *c, const char *instead);
/* Adds `error`, which all our errors have, to a body {"detail":…} as FastAPI writes it. */
void call_add_error(struct buf *reply, int status);
/* A 422 for one fault outside of a JSON body: `where` is "query", or "body" for a form. */
void call_fault(struct call *c, const char *where, const char *name, const struct field_fault *f);
/* The two ends of a request's way; for http_options. */
void call_begin(void *arg, struct http_req *r);
void call_finished(void *arg, struct http_req *r);
