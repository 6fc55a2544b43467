#pragma once
/* What the kernel says of connections that are being opened in our network namespace. */

#include "base/err.h"
#include "sandbox/egress/syn.h"

int diag_open(int *ret_fd, struct err *e);
/* What was left unread of an earlier answer goes. */
void diag_drain(int diag);
/* Whether somebody still tries to open this connection; true if it cannot be told. */
bool diag_is_opening(int diag, const struct syn *s);
