#pragma once
/* The ready sandboxes of one profile, and the guests that wait for one. */

#include "base/err.h"
#include "config/config.h"
#include "engine/core/queue.h"
#include "loop/loop.h"
#include "wire/messages.h"

struct engine;
struct guest;
struct sandbox;
struct wire_in;

struct profile_pool {
    struct engine *engine; /* borrowed */
    const struct config_profile *config;
    unsigned index;
    enum profile_state state;
    char what[2048];         /* version when ready, else the reason */
    char modules[4096];      /* top-level modules it preloads, space separated */
    struct sandbox *ready;   /* oldest first */
    unsigned nready, making; /* `making`: asked for and not yet ready */
    struct queue queue;      /* of guests */
    unsigned failures;       /* in a row */
    char last_failure[ERR_TEXT_MAX];
    struct timer retry, refill;
};

void pool_init(struct engine *g, unsigned i);
/* From W_PROFILE. */
void pool_profile(struct engine *g, struct wire_in *in);
/* Where the live sandboxes of a named profile are made; NULL where there are none. */
struct profile_pool *pool_live(struct engine *g, const char *name);
/* The same by the profile's place among all. */
const struct profile_pool *pool_live_at(const struct engine *g, unsigned profile);

void pool_ready(struct sandbox *s);
/* A sandbox that was being made will not come. */
void pool_failed(struct profile_pool *p, const char *why);
/* Gives ready sandboxes to waiting guests and asks for more where they are missing. */
void pool_dispatch(struct profile_pool *p);
void pool_refill(struct profile_pool *p);
/* A place is free again: first come those for whom a guest waits. */
void pool_freed(struct engine *g);
void pool_forget(struct sandbox *s);

/* A guest waits for a sandbox from now on, and may get one at once. */
void pool_enter(struct profile_pool *p, struct guest *who, const char *tenant);
/* It left without one: what was made for it is too much now. Does nothing when it did not wait. */
void pool_leave(struct profile_pool *p, struct guest *who);
/* Why it had to wait for longer than anybody may. */
void pool_late(const struct profile_pool *p, const struct guest *who, struct err *e);
