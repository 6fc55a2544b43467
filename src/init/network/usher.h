#pragma once
/* Init's side of the usher, the process that copies a sandbox's bytes (src/usher). */

#include "usher/page.h"
#include "wire/wire.h"

#include <stdint.h>
#include <sys/types.h>

struct init;

enum usher_state {
    USHER_NONE,
    USHER_STARTING, /* `starter` forks it inside of the control groups, and ends */
    USHER_READY,
    USHER_STATES_
};

struct usher {
    enum usher_state state;
    pid_t starter;
    pid_t pid;               /* USHER_READY; else 0 */
    int channel;             /* owned */
    uint64_t retry_ms;       /* no other one is started before */
    struct usher_page *page; /* shared with it; stays */
};

/* 0 when it is there or on its way; else an errno. */
int usher_start(struct init *b);
/* False: it cannot be told. */
bool usher_tell(struct usher *u, const struct wire_out *o);
/* What takes something away: one that cannot be told any more is ended, with all that it has. */
void usher_order(struct usher *u, const struct wire_out *o);
void usher_end(struct usher *u);
void usher_serve(struct init *b);
void usher_reaped(struct init *b, pid_t pid, int status);
