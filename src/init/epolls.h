#pragma once
/* The epoll descriptors of a sandbox, and what they watch; see epolls.c. */

#include "init/caller.h"

#include <stdbool.h>

#define EPOLLS_MAX 64

enum epoll_state {
    EPOLL_NONE,
    EPOLL_OURS, /* we have it open */
    EPOLL_LOST, /* the sandbox has it, nobody knows where */
};

struct epolls {
    uint8_t state[EPOLLS_MAX]; /* enum epoll_state */
    bool made;                 /* `lost`; until then it is 0 */
    int lost;                  /* owned: an epoll descriptor that watches the lost ones */
    unsigned watches;          /* at the most: those of the last look, and what was added since */
};

/* epoll_create() and epoll_create1(), for the sandbox's user. */
void epolls_make(struct epolls *l, const struct caller *c, uint32_t uid);
/* epoll_ctl(EPOLL_CTL_ADD). */
void epolls_add(struct epolls *l, const struct caller *c);

/* How many files this epoll descriptor of ours watches: it forgets a file that nobody has open. */
unsigned epolls_watched(int epoll);
