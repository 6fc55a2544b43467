#pragma once
/* What a sandbox may reach: rules, what is denied although a rule allows it, and bounds.
 *
 * policy_json.h reads and writes it as JSON, within.h holds it against the operator's maximum; here
 * are its bytes for the gate. */

#include "base/buf.h"
#include "base/err.h"
#include "net/rule.h"

enum net_mode {
    NET_NONE,  /* nothing; connects get ENETUNREACH */
    NET_RULES, /* what the rules allow */
    NET_OPEN,  /* and every address that is not closed */
    NET_MODES_
};

enum net_strict { NET_STRICT_DEFAULT, NET_STRICT_ON, NET_STRICT_OFF, NET_STRICTS_ };

struct net_policy {
    enum net_mode mode;
    enum net_strict strict_tls; /* the default is on; see net_judge_connect */
    bool unreachable;           /* refuse: "unreachable" */
    uint32_t connections;       /* 0: the default, NET_CONNECTIONS */
    uint64_t bytes;             /* both ways together; 0: no bound */
    uint32_t nallow, ndeny, noperator;
    struct net_rule *allow;    /* owned */
    struct net_cidr *deny;     /* owned */
    struct net_cidr *operator; /* owned; denied by the operator, before everything else */
};

#define NET_POLICY_INIT                                                                            \
    { .mode = NET_NONE }
#define AUTO_NET_POLICY __attribute__((cleanup(net_policy_done))) struct net_policy

void net_policy_done(struct net_policy *p);
void net_policy_copy(const struct net_policy *p, struct net_policy *ret);
/* False: there are as many as may be. */
bool net_policy_allow(struct net_policy *p, const struct net_rule *r);
bool net_policy_deny(struct net_policy *p, const struct net_cidr *c);
bool net_policy_deny_operator(struct net_policy *p, const struct net_cidr *c);
uint32_t net_policy_connections(const struct net_policy *p);

/* The first rule that allows this name and port; port 0: any port. NULL: none does. */
const struct net_rule *net_policy_find_name(const struct net_policy *p, const char *name,
                                            uint16_t port);
/* The first rule of at least this index with a wildcard over names of everybody, which replies
 * should speak of; nallow when there is none. */
uint32_t net_policy_broad(const struct net_policy *p, uint32_t from);

/* For the gate. What is decoded is as good as what was parsed, or refused; *ret is the caller's
 * (net_policy_done), and NET_NONE after a refusal. */
void net_policy_encode(const struct net_policy *p, struct buf *to);
int net_policy_decode(const void *data, size_t len, struct net_policy *ret, struct err *e);
