#pragma once
/* The epoll descriptors of a sandbox; see epolls.c. */

#include "init/caller.h"

#include <stdbool.h>

struct epolls {
    bool made; /* one of them; until then the next is 0 */
    int all;   /* owned: an epoll descriptor that watches them */
};

/* epoll_create() and epoll_create1(), for the sandbox's user. */
void epolls_make(struct epolls *l, const struct caller *c, uint32_t uid);

/* How many files this epoll descriptor of ours watches: it forgets a file that nobody has open. */
unsigned epolls_watched(int epoll);
