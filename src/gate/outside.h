#pragma once
/* Sockets to the outside. */

#include "net/judge.h"

/* Begins to connect. 0: it is connected; EINPROGRESS: it will be writable; else why not. *ret_fd is
 * the caller's, or -1. */
int outside_connect(const struct net_addr *address, uint16_t port, int *ret_fd);
/* Whether it is connected, or could not be, at once: the other end is on this machine. */
bool outside_is_over(int fd);
/* Of one that became writable: 0, or why it could not be connected. */
int outside_result(int fd);
/* SECURITY: whether the other end is this host, although none of the addresses that we know of it
 * (AnyIP, another table of routes). */
bool outside_is_this_host(int fd, const struct net_addr *address, const struct net_own *own);
