#pragma once
/* What the kernel says of the sockets in our network namespace. */

#include "base/err.h"
#include "sandbox/egress/syn.h"

#include <sys/types.h>

struct procs;

int diag_open(int *ret_fd, struct err *e);
/* Whether somebody still tries to open this connection; true if it cannot be told. */
bool diag_is_opening(int diag, const struct syn *s);
/* A process that has the UDP socket of this port open; 0: none was found. */
pid_t diag_who(int diag, int family, uint16_t port);
