#pragma once
/* Servers that listen inside a live sandbox: a connection to one, and which there are. */

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct live;

struct ports_answer {
    const struct err *why;      /* NULL: all went well */
    int fd;                     /* of a connection, which may not be there yet; the asker's */
    const unsigned char *ports; /* of a list: `n` of two bytes each, see ports_at */
    size_t n;
    bool cut;
};

/* Whoever asks; embedded in its owner, who leaves before it is freed. */
struct ports_ask {
    void (*fn)(void *arg, const struct ports_answer *a); /* once */
    void *arg;
    struct live *live; /* borrowed while the answer is to come, else NULL */
    bool lists;        /* for live_ports.c */
};

/* A request to a server inside, from its begin to its end: until then the sandbox is in use. Of one
 * that has ended nothing is left. */
void live_ports_enter(struct live *l);
void live_ports_exit(struct live *l);
unsigned live_ports_entered(const struct live *l);
/* -1: nothing was asked; kind "sandbox_busy", or "ports_unavailable" in a sandbox that an older
 * build made. */
int live_ports_connect(struct live *l, uint16_t port, bool ipv6, struct ports_ask *a,
                       struct err *e);
int live_ports_list(struct live *l, struct ports_ask *a, struct err *e);
void live_ports_leave(struct ports_ask *a);
uint16_t ports_at(const struct ports_answer *a, size_t i);
