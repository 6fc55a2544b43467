#pragma once
/* Named sets of rules: @pypi, @npm and @debian are the hosts that those tools need. An operator can
 * add sets and put others in the place of ours. (Library net_json.) */

#include "base/err.h"
#include "net/rule.h"

struct net_set {
    char name[32];
    uint32_t nrules;
    struct net_rule *rules; /* owned */
};

struct net_sets {
    uint32_t n;
    struct net_set *sets; /* owned */
};

#define AUTO_NET_SETS __attribute__((cleanup(net_sets_done))) struct net_sets

void net_sets_done(struct net_sets *s);
/* The setting network_sets: {"NAME": ["rule", …], …} as JSON, or "". The error names the entry;
 * *ret is the caller's. */
int net_sets_from_text(const char *text, size_t len, struct net_sets *ret, struct err *e);
/* Calls `fn` for each rule of a set, by its name without the '@': the operator's, else ours. False:
 * there is none. `s` may be NULL. */
typedef void net_set_rule_fn(void *arg, const struct net_rule *r);
bool net_sets_find(const struct net_sets *s, const char *name, size_t len, net_set_rule_fn *fn,
                   void *arg);
/* The names of all sets, ours and theirs, with commas between: for errors and /v1/info. */
struct buf;
void net_sets_names(const struct net_sets *s, struct buf *to);
