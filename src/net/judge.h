#pragma once
/* What a policy says of one connect, one name, one ClientHello, with words for whoever was refused.
 *
 * The order: what the operator denies, closed ranges and the host's own addresses unless a rule
 * names them, `deny`, address rules, remembered answers of names, "open". */

#include "net/answers.h"
#include "net/policy.h"

enum net_check {
    NET_CHECK_NONE,
    NET_CHECK_TLS,  /* the ClientHello must say a name that is allowed */
    NET_CHECK_HTTP, /* every request's Host */
    NET_CHECKS_
};

struct net_verdict {
    int errnum; /* 0: allowed */
    enum net_check check;
    char rule[NET_WORD_SIZE]; /* the rule that allows it; else "network:…" */
    char name[NET_NAME_SIZE]; /* that the address was told for, or "" */
    /* "connect to pypi.org (151.101.0.223) port 443"; "" is for a refusal that nobody is told: a
     * question for the name of an address. */
    char op[NET_OP_SIZE];
    char detail[NET_DETAIL_SIZE];
};

/* The addresses of the host itself. */
struct net_own {
    const struct net_addr *at; /* borrowed */
    size_t n;
};

/* strict_tls is for connections that a rule for names allows, on ports 443 and 80. */
void net_judge_connect(const struct net_policy *p, struct net_answers *a, const struct net_own *own,
                       const struct net_addr *address, uint16_t port, uint64_t now_ms,
                       struct net_verdict *ret);
/* `name` as the question says it. errnum is ENOENT for a refused one; whoever answers then says
 * NXDOMAIN, or the sentinel where p->unreachable. `rule` is a rule that allows it on some port, or
 * "network:open". */
void net_judge_name(const struct net_policy *p, const char *name, struct net_verdict *ret);
/* Whether an address may be told for a name: not one that is closed or denied. */
bool net_judge_answer(const struct net_policy *p, const struct net_own *own,
                      const struct net_addr *address);
/* The name that a connection says to the address ("" for none). It has to be allowed on this port:
 * not necessarily told for this address, since it could be reached directly as well. */
void net_judge_hello(const struct net_policy *p, enum net_check check,
                     const struct net_addr *address, uint16_t port, const char *name,
                     struct net_verdict *ret);
/* A connection that is open, with another policy or after a new gate's start: `rule` is what its
 * verdict said, `check` what is looked at since, `name` the name that the address was told for or
 * that the connection said, or "". A refusal's words tell what changed. */
void net_judge_again(const struct net_policy *p, const struct net_own *own,
                     const struct net_addr *address, uint16_t port, const char *rule,
                     enum net_check check, const char *name, struct net_verdict *ret);

/* A refusal for a reason of the caller's: "network:limit", and what the limit is. */
void net_verdict_refuse(struct net_verdict *ret, const struct net_addr *address, uint16_t port,
                        const char *name, int errnum, const char *rule, const char *detail);
/* "pypi.org (151.101.0.223) port 443", for the audit log. Returns `to`. */
const char *net_target_text(const struct net_addr *address, uint16_t port, const char *name,
                            char *to, size_t size);
