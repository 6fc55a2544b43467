#pragma once
/* The addresses that a sandbox was told for the names it asked for: what a rule for a name lets it
 * connect to. At most NET_ANSWERS; the least recently used goes first. One that was neither
 * answered nor used is forgotten after its TTL and ten minutes. */

#include "net/policy.h"

struct net_answers; /* opaque */

struct net_answers *net_answers_new(void);
void net_answers_free(struct net_answers *a);
/* `name` as net_name_clean writes it. */
void net_answers_add(struct net_answers *a, const char *name, const struct net_addr *address,
                     uint32_t ttl_s, uint64_t now_ms);
/* `p` is that of the last net_answers_prune. The rule of the policy that lets this address and port
 * be reached under a name that it was told for; counts as a use. NULL: none. *ret_name is that name
 * (or, where no rule is for the port, some name of the address, or NULL), borrowed until the next
 * call. */
const struct net_rule *net_answers_find(struct net_answers *a, const struct net_policy *p,
                                        const struct net_addr *address, uint16_t port,
                                        uint64_t now_ms, const char **ret_name);
/* Before the first net_answers_find, and with another policy: forgets what no rule allows any more.
 */
void net_answers_prune(struct net_answers *a, const struct net_policy *p);
size_t net_answers_count(const struct net_answers *a);
