#pragma once
/* A request on its way through the API: what it asks for, who asks, and how to answer. For api/
 * only.
 */

#include "api/api.h"
#include "api/core/audit.h"
#include "api/core/metrics.h"
#include "base/json.h"
#include "http/fields.h"
#include "http/openapi.h"
#include "keys/keys.h"

struct body;
struct fetcher;
struct jupyter_hub;
struct named;
struct records;
struct replays;
struct tenant_use;

struct api {
    struct api_options o;
    const struct config *config; /* borrowed from the engine */
    struct http *http;
    struct metrics metrics;
    struct keys keys;
    bool has_keys;
    struct guard *guard;      /* per-key limits */
    struct records *records;  /* recent executions */
    struct replays *replays;  /* replies by Idempotency-Key */
    struct jupyter_hub *hubs; /* Jupyter's kernels that somebody asked for */
    struct named *named;      /* owned: sandboxes that dialects call by name, being made */
    struct fetcher *fetcher;  /* owned: made when it is first needed; or NULL */
    unsigned alone;           /* pieces of work that go on without their clients */
    struct audit audit;
    uint64_t started_ns;
    /* draining */
    unsigned active;
    struct timer drain_timer;
    uint64_t drain_until_ns;
    void (*drained)(void *arg);
    void *drained_arg;
};

struct call;
struct problem;
struct route {
    struct api_doc doc;
    void (*fn)(struct call *c);
    size_t body_max;     /* 0: the route takes no body, or takes it by itself */
    bool is_open;        /* needs no key */
    bool is_free;        /* does not count against a key's limits */
    const char *dialect; /* there only when this one is spoken; NULL: always */
    /* How it says what went wrong: the body, and the status; NULL: as everybody. */
    int (*tell)(const struct call *c, const struct problem *p, struct buf *to);
};
extern const struct route routes[];
extern const size_t routes_n;
/* How paths that are no route's are refused: only path, dialect and tell are used. */
extern const struct route unknown_routes[];
extern const size_t unknown_routes_n;

/* routes.c. Whether a dialect is spoken; 1 for the first, which has shared paths, 2 for the next.
 */
unsigned dialect_rank(const struct api *a, const char *dialect);
bool route_is_there(const struct api *a, const struct route *r);

#define CALL_PARAMS 2
struct call {
    struct api *api;
    struct http_req *req;
    const struct route *route;
    char tenant[65], key_id[24]; /* no key: "default" and "" */
    struct key_limits limits;
    char id[40];                     /* of the request, for logs and the X-Request-Id header */
    const char *params[CALL_PARAMS]; /* {…} of the path */
    char *path_copy;                 /* owned */
    json_t *body;                    /* owned: checked against the route's table, or NULL */
    struct body *large;              /* owned: where `body` is from, if that was large; or NULL */
    struct tenant_use *use;          /* borrowed: what its tenant holds, this one too; or NULL */
    bool counted;                    /* holds a place of the key's concurrent ones */
    void *state;                     /* of the handler */
    void (*state_done)(void *state); /* when the request is over */
};

/* The error object of api.md. `detail` is what existing clients read; NULL: the message. */
struct problem {
    int status;
    const char *code, *message /* NULL: text */, *remediation, *detail;
    bool retryable;
    unsigned retry_after_s;
    char text[ERR_TEXT_MAX];
};
void call_problem(struct call *c, const struct problem *p);
/* Whether its route is one of Jupyter's, whose errors have a message and a reason as well. */
bool call_is_jupyter(const struct call *c);
void problem_json(const struct problem *p, struct buf *to);
/* Counts a 429 or 503 that is told in another way than by call_problem. */
void call_refused(const struct call *c, const struct problem *p);
/* The reply for an error of the engine or the store. */
void call_fail(struct call *c, const struct err *e);
struct problem problem_of(const struct err *e);
void call_json(struct call *c, int status, const struct buf *json);
/* Whether the request is the handshake of a WebSocket; otherwise it was answered. `instead` is what
 * can be done without one. */
bool call_is_websocket(struct call *c, const char *instead);
/* To a body {"detail":…} of the contract's: the error object that all our errors have, behind it.
 */
void call_add_error(struct buf *reply, int status);
/* The two ends of a request's way; for http_options. */
void call_begin(void *arg, struct http_req *r);
void call_finished(void *arg, struct http_req *r);

/* guard.c: shares of a tenant, limits of a key. 0, or -1 and a problem that is filled in. */
struct guard *guard_new(void);
/* It is known who asks: takes one of the tenant's connections, unless it has its share of them. */
int guard_settle(struct guard *g, struct call *c, struct problem *ret);
void guard_unsettle(struct call *c);       /* the request is over; work of its may go on */
size_t guard_bodies(const struct call *c); /* bytes that its tenant's bodies may have together */
int guard_enter(struct guard *g, struct call *c, struct problem *ret);
void guard_leave(struct guard *g, struct call *c);
void guard_used(struct guard *g, const char *key_id, double cpu_seconds);
int guard_may_run(struct guard *g, const struct call *c, struct problem *ret);
