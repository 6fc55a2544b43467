#pragma once
/* The host's own addresses, as they are now: sandboxes reach none of them unless a rule names it.
 */

#include "base/err.h"
#include "net/judge.h"

struct host;
struct loop;

/* Opens the socket that tells, and reads what there is. */
int host_new(struct loop *l, struct host **ret, struct err *e);
void host_free(struct host *h);
/* Borrowed until the loop goes on. */
struct net_own host_own(const struct host *h);
/* For host.c and its test: what one message of the kernel says. */
void host_take(struct host *h, const void *data, size_t len);
