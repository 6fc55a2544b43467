#pragma once
/* A dialect: the API of another service, spoken beside the native one. It is a directory below
 * api/dialects with one `struct dialect`, which config/dialects.def lists; nothing else knows of
 * it. What a dialect does not need is NULL. For api/ only. */

#include "api/core/route.h"

struct cell;
struct cell_job;
struct jw;
struct live;

struct dialect {
    const char *name;                        /* in --dialects */
    const char *help;                        /* in the specification, of its first route's tag */
    const struct route_table *const *tables; /* its routes; ends with NULL */
    /* A path without a route is refused in the dialect's words if it fits this one. */
    const struct route *unknown;

    tell_fn *tell;                /* how errors are said; NULL: as the native API does */
    const struct schema *refusal; /* what that is: ours, with or without its own members */
    int also_status;              /* that any of them may have instead of its own; or 0 */
    /* Adds its words to the refusal of a body, an object that has `detail` and `error`. */
    void (*tell_body)(int status, struct buf *reply);
    bool at_doors;      /* its paths are there at the ports of single sandboxes too (doors.h) */
    const char *secret; /* the query parameter in which the key may be, beside the headers */

    /* GET / tells `version` and GET /health says `up` or `down` where this is the first dialect of
     * those that are spoken; GET / has what `put_about` adds to its object wherever it is. */
    const char *version, *up, *down;
    void (*put_about)(const struct call *c, bool is_up, struct jw *j);

    /* Also of a dialect that is not spoken any more: it may have left something. */
    void *(*start)(struct api *a); /* makes its state: dialect_state */
    void (*adopt)(struct api *a);  /* before the first request: live sandboxes that were kept */
    /* An execution in one of them that goes on, and the job of it. False: another dialect's. */
    bool (*inherit)(struct api *a, struct live *l, struct cell *c, struct cell_job *job);
};

/* A dialect in this server. */
struct speaker {
    const struct dialect *dialect;
    unsigned rank; /* 1: the first of those that are spoken; 0: it is not */
    void *state;   /* owned by the dialect */
};

/* `list` ends with NULL. */
void dialects_start(struct api *a, const struct dialect *const *list);
void dialects_adopt(struct api *a);
void dialects_inherit(struct api *a, struct live *l, struct cell *c, struct cell_job *job);
void *dialect_state(const struct api *a, const struct dialect *d);
