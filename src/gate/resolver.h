#pragma once
/* Names to addresses, by the host's name servers or those of the configuration, never by a file of
 * the host. Answers are shared by all sandboxes for as long as they say, at most NET_TTL_MAX. */

#include "base/err.h"
#include "gate/reply.h"
#include "loop/loop.h"

struct resolver;
struct resolver_entry;

#define RESOLVER_ENTRIES 4096 /* answers that are kept, and questions under way */

/* Embedded by whoever asks. */
struct resolver_ask {
    struct resolver_ask *next;
    struct resolver_entry *entry; /* borrowed; NULL: not under way */
    void (*fn)(struct resolver_ask *a, const struct reply *r);
    void *arg;
};

int resolver_new(struct loop *l, struct resolver **ret, struct err *e);
void resolver_free(struct resolver *r);
/* From here on: `servers` with commas, or, when that is empty, those of the file. */
int resolver_use(struct resolver *r, const char *servers, int resolv_fd, struct err *e);

/* `name` in its one form (net/rule.h), `type` NET_DNS_A or NET_DNS_AAAA. fn is called once, maybe
 * before this returns. */
void resolver_ask(struct resolver *r, const char *name, uint16_t type, struct resolver_ask *a);
/* fn will not be called. */
void resolver_drop(struct resolver_ask *a);
