#pragma once
/* The host's own addresses, as they are now: sandboxes reach none of them unless a rule names it.
 */

#include "base/err.h"
#include "net/judge.h"

struct host;
struct loop;

/* Opens the socket that tells, and reads what there is. fn is called whenever there are more. */
int host_new(struct loop *l, void (*fn)(void *arg), void *arg, struct host **ret, struct err *e);
void host_free(struct host *h);
/* Borrowed until the loop goes on. */
struct net_own host_own(const struct host *h);
