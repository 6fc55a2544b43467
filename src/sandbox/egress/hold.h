#pragma once
/* Both ends of a held connect(): what keeps its SYN unanswered, and what answers it. Needs
 * CAP_NET_ADMIN and CAP_NET_BIND_SERVICE over the network namespace, whose routes are those of
 * anyip.h. */

#include "base/err.h"
#include "sandbox/egress/end.h"

#include <sys/socket.h>

/* A listener on `to` that never answers: whoever connects to it stays in SYN_SENT. */
int hold_open(const struct end *to, int *ret_fd, struct err *e);
/* A listener on `to` that the kernel answers from, for one connect. EADDRINUSE where somebody has
 * the port, on whatever address: hold_open has a way then. */
int hold_listen(const struct end *to, int *ret_fd, struct err *e);
/* Connects `caller`, somebody else's socket, to `address`, which is `to` of hold_listen as he wrote
 * it. 0 or an errno. It waits for nobody: EINTR when whoever has the socket keeps it from being
 * over at once; hold_alarm comes before the first. */
void hold_alarm(void);
int hold_connect(int caller, const struct sockaddr *address, socklen_t len);
/* Our end of what was connected to a listener; `from` is the other one. */
int hold_accept(int listener, struct end *ret_from, int *ret_fd, struct err *e);
/* How large its queue is and how it is probed, for an end that was accepted. */
int hold_dress(int fd, struct err *e);
/* A socket that begins, from `to`, a connection to `from`, which is in SYN_SENT to it: the two open
 * simultaneously. It can be written to when they are connected. Whoever holds `to` lets go
 * before: the program may want to listen there the moment it is connected. */
int hold_answer(const struct end *from, const struct end *to, int *ret_fd, struct err *e);
