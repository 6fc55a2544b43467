#pragma once
/* The first packets of connections in our network namespace: seen by a raw socket, and answered by
 * crafted ones where the connection fails. Needs CAP_NET_RAW over the namespace. */

#include "base/err.h"
#include "sandbox/egress/end.h"

struct syn {
    struct end from, to;
    uint32_t seq;
};

/* Non-blocking; sees the SYNs of one family. */
int syn_open(int family, int *ret_fd, struct err *e);
/* The next one; false: there is none now. A packet that is none makes it a SYN to port 0. */
bool syn_next(int raw, struct syn *ret);
/* Whether there is a packet that has connect() fail so; else silence is all that can be done. */
bool syn_can_fail(int errnum);
/* Has connect() fail. An ICMP message is lost on a socket that is being worked with: where the
 * errno is not ECONNREFUSED, whoever must be sure says it again. */
int syn_fail(const struct syn *s, int errnum, struct err *e);
