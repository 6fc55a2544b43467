#pragma once
/* Both ends of a held connect(): what keeps its SYN unanswered, and what answers it. Needs
 * CAP_NET_ADMIN and CAP_NET_BIND_SERVICE over the network namespace, whose routes are those of
 * anyip.h. */

#include "base/err.h"
#include "sandbox/egress/end.h"

/* A listener on `to` that never answers: whoever connects to it stays in SYN_SENT. */
int hold_open(const struct end *to, int *ret_fd, struct err *e);
/* A socket that begins, from `to`, a connection to `from`, which is in SYN_SENT to it: the two open
 * simultaneously. It can be written to when they are connected. Whoever holds `to` lets go
 * before: the program may want to listen there the moment it is connected. */
int hold_answer(const struct end *from, const struct end *to, int *ret_fd, struct err *e);
