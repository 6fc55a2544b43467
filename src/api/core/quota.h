#pragma once
/* What a tenant may have of the server at once, and the limits of a key. Functions that return -1
 * have filled in the problem. For api/ only. */

#include "api/core/call.h"

struct quota *quota_new(void);
/* It is known who asks: takes one of the tenant's connections, unless it has its share of them. */
int quota_settle(struct quota *g, struct call *c, struct problem *ret);
void quota_unsettle(struct call *c); /* the request is over; its work may go on */
/* How many of `all` places one tenant may take: half where others have keys too. */
unsigned quota_share(const struct api *a, const char *tenant, unsigned all);
/* How many bytes the bodies of its tenant may have together. */
size_t quota_bodies(const struct call *c);
/* Takes one of the key's places for requests at once; *ret_counted stays when there are no such
 * places. */
int quota_enter(struct quota *g, const struct caller *who, bool *ret_counted, struct problem *ret);
void quota_leave(struct quota *g, const struct caller *who, bool *counted);
/* Before something runs; and what it has used. */
int quota_may_run(const struct caller *who, struct problem *ret);
void quota_used(struct quota *g, const char *key, double cpu_seconds);
