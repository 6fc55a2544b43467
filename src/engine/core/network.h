#pragma once
/* What sandboxes may reach of the network: the engine's end of the channel to the gate, and for
 * each sandbox with a policy how far that has come.
 *
 * A policy is given to the gate, which answers with a channel; that goes to the sandbox's init,
 * which asks there. When another gate comes, or this is another server, the same is done again, and
 * nobody waits for it: the sandbox goes on, and init holds what is asked meanwhile. */

#include "base/buf.h"
#include "base/err.h"
#include "engine/network/used.h"
#include "loop/loop.h"
#include "wire/chan.h"
#include "wire/codec.h"

#include <stdbool.h>
#include <stdint.h>

struct engine;
struct network_terms;
struct sandbox;

enum network_state {
    NETWORK_NONE,   /* no policy */
    NETWORK_AWAY,   /* the gate does not know of it, or has refused it */
    NETWORK_ASKED,  /* the gate is to make a channel */
    NETWORK_HANDED, /* init is to take it */
    NETWORK_THERE,
};

typedef void network_fn(void *arg, const struct err *why);

/* Of one sandbox; embedded in it. */
struct network {
    enum network_state state;
    const struct network_terms *terms; /* borrowed from its guest */
    uint32_t serial, in_force;         /* of the policy */
    unsigned handing;                  /* questions to init about it without an answer yet */
    uint32_t open;                     /* outside sockets that the gate has made for it, about */
    network_fn *done;                  /* who waits for it; or NULL */
    void *arg;
    struct timer deadline; /* for that */
};

/* The engine's part. */
struct network_gate {
    struct chan chan;               /* fd -1: there is no gate now */
    struct g_counts counts, before; /* of this gate, and of those before it */
    /* A first use or a refusal, for a log; or NULL. */
    void (*on_note)(void *arg, const struct sandbox *s, const struct g_note *m);
    void *note_arg;
};

void network_init(struct engine *g);
/* From W_GATE. */
void network_take_gate(struct engine *g, struct wire_in *in);
/* Whether this machine can hold policies at all; kind "network_unavailable". */
int network_possible(const struct engine *g, struct err *e);
bool network_is_up(const struct engine *g); /* there is a gate */

/* From now on these terms are the sandbox's; they live until others come or it ends. `done` once,
 * not from within, when they are in force, or with kind "network_unavailable": then they will be as
 * soon as they can. -1: somebody else waits already, or it can never be. */
int network_set(struct sandbox *s, const struct network_terms *terms, network_fn *done, void *arg,
                struct err *e);
/* Whoever waited does not any more. */
void network_leave(struct sandbox *s, const void *arg);
/* The terms that an earlier server gave. */
void network_inherit(struct sandbox *s, const struct network_terms *terms);
/* The sandbox ends. */
void network_end(struct sandbox *s);
/* Asks init what went through so far; false: nothing can have, or it cannot be asked. */
bool network_ask_used(struct sandbox *s, void (*fn)(void *arg, struct wire_in *in), void *arg);
/* Its answer, or NULL: then nothing changes. */
void network_read_used(struct wire_in *in, struct network_used *ret);
/* Of the memory budget: what the kernel may hold for its outside sockets. */
uint64_t network_bytes(const struct sandbox *s);
/* What all gates so far have counted. */
struct g_counts network_counts(const struct engine *g);
