#pragma once
/* What all requests share. For api/ only. */

#include "api/core/audit.h"
#include "api/core/dialect.h"
#include "api/core/metrics.h"
#include "api/core/options.h"
#include "api/core/route.h"
#include "api/core/shares.h"
#include "engine/core/engine.h"
#include "engine/store/store.h"
#include "http/http.h"
#include "keys/keys.h"
#include "keys/links.h"
#include "loop/share.h"

struct quota;
struct alias;
struct door;
struct mcp;
struct place_known;
struct port_call;
struct own_profiles;
struct records;
struct replays;

struct api {
    struct api_options o;
    const struct config *config; /* borrowed from the engine */
    struct http *http;
    struct route_list routes;
    struct speaker *speakers; /* owned: the dialects, `nspeakers` of them */
    unsigned nspeakers;
    struct metrics metrics;
    struct keys keys;
    bool has_keys;
    struct link_secret links;     /* what links are signed with */
    struct mcp *mcp;              /* what is at /mcp */
    struct quota *quota;          /* per-key limits */
    struct records *records;      /* recent executions */
    struct own_profiles *own;     /* owned: profiles of tenants */
    struct replays *replays;      /* replies by Idempotency-Key */
    struct alias *aliases;        /* owned: sandboxes that dialects call by name, being made */
    struct place_known *places;   /* owned: which sandbox a name of MCP meant last */
    struct door *doors;           /* owned: ports that mean one live sandbox each */
    struct shares port_calls;     /* requests to servers in sandboxes, under way */
    struct loop_share port_share; /* of turns of the loop, for what those answer */
    struct shares alone;          /* pieces of work that go on without their clients */
    struct loop_share batching;   /* of turns of the loop, for items of batches that begin */
    struct shares archives;       /* archives under way; of uploads also their bytes */
    enum { BODIES_KEPT, BODIES_WERE_MANY, BODIES_BEING_TRIMMED } bodies_trim; /* see body.c */
    struct audit audit;
    uint64_t started_ns;
    /* draining */
    unsigned active;
    struct timer drain_timer;
    uint64_t drain_until_ns;
    void (*drained)(void *arg);
    void *drained_arg;
};
