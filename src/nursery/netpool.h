#pragma once
/* Network namespaces, kept for reuse: one costs half a millisecond to make (and as much again to
 * destroy), nine microseconds to enter. A namespace is used again only if nobody has used it: each
 * socket that reaches one goes past init (init/sockets.c), which leaves a mark. Sockets are the
 * only way: its settings belong to the nursery's root. Abstract names of AF_UNIX are looked for. */

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

#define NETPOOL_MAX 64

/* What the server and we read of a namespace; opened once, since that costs more than reading. */
enum net_table { NET_SNMP, NET_SNMP6, NET_UNIX, NET_SOCKSTAT, NET_TABLES_ };

struct net {
    int ns;                  /* owned; -1: none */
    int tables[NET_TABLES_]; /* owned; the null device where the kernel has no such table */
};

struct netpool {
    struct net spare[NETPOOL_MAX];
    unsigned nspare;
    unsigned long made, reused, dropped;
};

int netpool_init(struct netpool *p, struct err *e);
void netpool_done(struct netpool *p);
/* The calling process is in a clean namespace afterwards, which is *ret. */
int netpool_enter(struct netpool *p, struct net *ret, struct err *e);
/* All that was in it is dead. Takes it. */
void netpool_give_back(struct netpool *p, struct net *n, bool used);
