#pragma once
/* Questions for names on their way from the usher to the gate, and back. */

#include "init/network/who.h"
#include "net/bounds.h"
#include "net/bucket.h"
#include "wire/codec.h"

struct init;

struct name_question {
    bool waits;
    uint32_t id;     /* for the gate */
    uint32_t number; /* the usher's */
    uint16_t port;   /* of who asks */
    int family;
    uint64_t since_ms;
};

struct name_table {
    struct name_question all[NET_QUESTIONS];
    uint32_t serial;
    struct net_bucket rate;
    struct net_bucket searches; /* for who asked */
    struct who asker;           /* the last one that was found */
};

void names_on_name(struct init *b, const struct u_name *m);
void names_on_named(struct init *b, const struct a_named *m);
/* Whoever waits is told that it failed: now there is no gate. */
void names_gate_lost(struct init *b);
/* There is nobody who could be told. */
void names_usher_lost(struct init *b);
