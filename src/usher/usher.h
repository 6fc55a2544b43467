#pragma once
/* The process that copies bytes between the sockets of a sandbox and those outside: see usher.c. */

#include "usher/page.h"

enum usher_names { USHER_UDP4, USHER_UDP6, USHER_TCP4, USHER_TCP6, USHER_NAMES };

struct usher_plan {
    int channel;            /* SEQPACKET, to init */
    int names[USHER_NAMES]; /* what is sent to port 53: datagrams, listeners; -1: there is none */
    uint64_t bytes;         /* the bound on all bytes; 0: none */
    struct usher_page *page;
};

/* In a process that init forked: gives up everything else and serves. */
_Noreturn void usher_main(const struct usher_plan *p);
