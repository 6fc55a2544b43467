#pragma once
/* A watch over the pages that unread bytes in a sandbox's sockets can hold; see pages.c. */

#include "init/machine.h"

#include <stdbool.h>
#include <stdint.h>

/* What a look found, in bytes. */
struct pages_look {
    uint64_t listed;  /* what the sandbox can hold in the sockets that the kernel lists */
    uint64_t hidden;  /* in others */
    uint64_t lacking; /* what the machine lacks */
};

struct sockets;

struct pages {
    struct machine machine;
    int timer;       /* owned: a timerfd; -1: the sandbox has no sockets of TCP or UDP */
    uint64_t before; /* what the machine had unlisted at the least, since its first one */
    bool alert;      /* the machine has lacked half of what is too much since this look: */
    struct pages_look first;
    unsigned looks;
    unsigned late; /* looks in a row that found too much */
};

/* Sockets of the namespace that are in none of its lists. */
struct pages_others {
    struct sockets *sockets;
    unsigned netlink; /* the sandbox's */
    unsigned ours;    /* init's own */
    unsigned outside; /* the other ends of its connections, in the host's namespace */
};

/* What may lie in a socket, in bytes. */
struct queues {
    uint64_t received, unread; /* what its receive queue takes up; the data in that */
    uint64_t sent, unsent;     /* likewise its send queue */
    uint64_t backlog;
};

void pages_open(struct pages *p, const int files[MACHINE_FILES]);
/* The sandbox is about to have a socket. */
void pages_begin(struct pages *p);
/* The timer fired. True: the sandbox has to end. */
bool pages_tick(struct pages *p, const struct pages_others *o);

/* For tests. Bytes beyond what is charged, at the most. */
uint64_t pages_held(const struct queues *q);
/* For how many looks a sandbox may go on that holds too much while the machine lacks too much. */
unsigned pages_patience(const struct pages_look *first, const struct pages_look *now);
/* Of how many looks one is close: `lacks` is the machine, the rest is of the last close one. */
unsigned pages_every(bool lacks, bool alert, bool late);
