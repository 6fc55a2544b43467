#pragma once
/* Routes: a method, a path and a handler. Every file with handlers has its table beside them;
 * native/native.c and the dialects list those tables, and nobody lists the routes. For api/ only.
 */

#include "http/openapi.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct api;
struct body;
struct buf;
struct call;
struct dialect;
struct problem;

#define MB          (1024u * 1024u)
#define JSON_TYPE   "application/json"
#define STREAM_TYPE "text/event-stream"

/* How an error is said: writes the body and returns the status. */
typedef int tell_fn(const struct call *c, const struct problem *p, struct buf *to);

struct route {
    struct api_doc doc; /* one without a summary is not in /openapi.json */
    void (*fn)(struct call *c);
    size_t body_max; /* 0: the route takes no body, or takes it by itself */
    bool is_open;    /* needs no key */
    bool is_free;    /* does not count against a key's limits */
    bool at_sites;   /* is what is asked of hosts of their own; one route is (sites.h) */
    bool at_doors;   /* is there at the ports of single sandboxes too, as those of some dialects */
    tell_fn *tell;   /* NULL: as its dialect says errors */
    const struct schema *refusal; /* what it writes then; NULL: what its dialect writes */
    /* Of a large body, beside the loop: makes of its long texts what the handler needs (body.h).
     * Or NULL. */
    void (*prepare)(struct body *b, const json_t *request);
};

/* The routes of one file. Of two that fit a request the first wins. */
struct route_table {
    const struct route *routes;
    size_t n;
};
#define ROUTE_TABLE(array)                                                                         \
    { array, sizeof(array) / sizeof *(array) }

/* All routes of a server, in the order in which they are tried and documented. */
struct route_list {
    struct route_entry {
        const struct route *route;
        const struct dialect *dialect; /* NULL: the native API's */
    } * items;                         /* owned */
    size_t n;
    struct spec *specs; /* owned: those that somebody asked for */
};

/* `tables` ends with NULL. */
void routes_add(struct route_list *l, const struct route_table *const *tables,
                const struct dialect *of);
/* The call's route and dialect; otherwise the client has its reply. */
bool route_find(struct call *c);
