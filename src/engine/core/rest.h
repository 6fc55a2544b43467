#pragma once
/* How long the server has worked for a sandbox lately, and for how long the sandbox waits for more
 * of it. Embedded in its owner. */

#include "loop/loop.h"

struct engine;

struct rest {
    struct rest *next;     /* of those that we worked for lately: engine->resting */
    bool listed;           /* there */
    unsigned sharers;      /* of its tenant's, with itself, */
    uint64_t counted_ns;   /* as of then */
    struct engine *engine; /* borrowed */
    const char *tenant;    /* borrowed from the owner */
    uint64_t tired_ns, tired_at_ns;
    struct timer timer; /* set while it rests */
    void (*on_rested)(struct rest *r);
    void *arg;
};

/* So much processor time went into it. True: it is to rest, and on_rested tells when it has. */
bool rest_after(struct rest *r, uint64_t cpu_ns);
bool rest_is_on(const struct rest *r);
void rest_end(struct rest *r);
