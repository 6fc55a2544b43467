#pragma once
/* The sockets with which a sandbox can use its network namespace; see sockets.c. */

#include "init/caller.h"

#include <stdbool.h>

struct sockets {
    bool made;       /* a netlink socket; until then the next is 0 */
    int netlink;     /* owned: an epoll descriptor that watches them */
    uint64_t cookie; /* of the network namespace; 0: not looked up yet */
};

/* Of all kinds, in our network namespace, which is the sandbox's. */
unsigned sockets_count(void);
/* Those of netlink that the sandbox has. */
unsigned sockets_netlink(const struct sockets *s);
/* Whether it is one of our network namespace. */
bool sockets_inside(struct sockets *s, int fd);
/* socket() of a family that seccomp_service names. `ours` of those in the namespace are init's. */
void sockets_make(struct sockets *s, const struct caller *c, unsigned ours);
/* accept() and accept4(). */
void sockets_accept(struct sockets *s, struct caller *c, unsigned ours);
/* setsockopt(SO_SNDBUF) on any socket. */
void sockets_buffer(struct caller *c);
/* setsockopt(SO_REUSEADDR or SO_REUSEPORT) on any socket. */
void sockets_reuse(struct caller *c);
