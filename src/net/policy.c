/* See policy.h. As bytes: `struct policy_head`, then rules and ranges one behind the other, each in
 * the order of its fields below. The gate and the server are of one build; a version guards it. */

#include "net/policy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define POLICY_VERSION 1

struct policy_head {
    uint32_t version, mode, strict_tls, unreachable, connections, nallow, ndeny, noperator;
    uint64_t bytes;
};

void net_policy_done(struct net_policy *p) {
    free(p->allow);
    free(p->deny);
    free(p->operator);
    *p = (struct net_policy)NET_POLICY_INIT;
}

static void *policy_dup(const void *from, size_t n, size_t size) {
    if (n == 0)
        return NULL;
    void *to = xcalloc(n, size);
    memcpy(to, from, n * size);
    return to;
}

void net_policy_copy(const struct net_policy *p, struct net_policy *ret) {
    *ret = *p;
    ret->allow = policy_dup(p->allow, p->nallow, sizeof *p->allow);
    ret->deny = policy_dup(p->deny, p->ndeny, sizeof *p->deny);
    ret->operator= policy_dup(p->operator, p->noperator, sizeof *p->operator);
}

bool net_policy_allow(struct net_policy *p, const struct net_rule *r) {
    if (p->nallow == NET_ALLOW_MAX)
        return false;
    p->allow = xrealloc(p->allow, (p->nallow + 1) * sizeof *p->allow);
    p->allow[p->nallow++] = *r;
    return true;
}

static bool policy_add_range(struct net_cidr **list, uint32_t *n, const struct net_cidr *c) {
    for (uint32_t i = 0; i < *n; i++)
        if (net_cidr_within(c, &(*list)[i]))
            return true;
    if (*n == NET_DENY_MAX)
        return false;
    *list = xrealloc(*list, (*n + 1) * sizeof **list);
    (*list)[(*n)++] = *c;
    return true;
}

bool net_policy_deny(struct net_policy *p, const struct net_cidr *c) {
    return policy_add_range(&p->deny, &p->ndeny, c);
}

bool net_policy_deny_operator(struct net_policy *p, const struct net_cidr *c) {
    return policy_add_range(&p->operator, & p->noperator, c);
}

uint32_t net_policy_connections(const struct net_policy *p) {
    return p->connections == 0 ? NET_CONNECTIONS : p->connections;
}

const struct net_rule *net_policy_find_name(const struct net_policy *p, const char *name,
                                            uint16_t port) {
    for (uint32_t i = 0; i < p->nallow; i++)
        if (net_rule_has_name(&p->allow[i], name) &&
            (port == 0 || net_rule_has_port(&p->allow[i], port)))
            return &p->allow[i];
    return NULL;
}

uint32_t net_policy_broad(const struct net_policy *p, uint32_t from) {
    while (from < p->nallow && !net_rule_is_broad(&p->allow[from]))
        from++;
    return from;
}

/* ---- bytes out */

static void put_range(struct buf *to, const struct net_cidr *c) {
    buf_add(to, c->at.b, sizeof c->at.b);
    buf_add(to, &c->bits, 1);
}

static void put_rule(struct buf *to, const struct net_rule *r) {
    const uint8_t head[] = {(uint8_t)r->kind, r->own, r->nports};
    buf_add(to, head, sizeof head);
    buf_add(to, r->ports, r->nports * sizeof *r->ports);
    if (r->kind == NET_RULE_ADDRESS) {
        put_range(to, &r->range);
        return;
    }
    uint8_t len = (uint8_t)strlen(r->name);
    buf_add(to, &len, 1);
    buf_add(to, r->name, len);
}

void net_policy_encode(const struct net_policy *p, struct buf *to) {
    const struct policy_head head = {
        .version = POLICY_VERSION,
        .mode = p->mode,
        .strict_tls = p->strict_tls,
        .unreachable = p->unreachable,
        .connections = p->connections,
        .nallow = p->nallow,
        .ndeny = p->ndeny,
        .noperator = p->noperator,
        .bytes = p->bytes,
    };
    buf_add(to, &head, sizeof head);
    for (uint32_t i = 0; i < p->nallow; i++)
        put_rule(to, &p->allow[i]);
    for (uint32_t i = 0; i < p->ndeny; i++)
        put_range(to, &p->deny[i]);
    for (uint32_t i = 0; i < p->noperator; i++)
        put_range(to, &p->operator[i]);
}

/* ---- bytes in */

struct policy_in {
    const uint8_t *at, *end;
};

static bool take_bytes(struct policy_in *in, void *to, size_t len) {
    if ((size_t)(in->end - in->at) < len)
        return false;
    memcpy(to, in->at, len);
    in->at += len;
    return true;
}

static bool take_range(struct policy_in *in, struct net_cidr *ret) {
    return take_bytes(in, ret->at.b, sizeof ret->at.b) && take_bytes(in, &ret->bits, 1) &&
           net_cidr_is_good(ret);
}

static bool take_rule(struct policy_in *in, struct net_rule *ret) {
    uint8_t head[3], len;
    *ret = (struct net_rule){0};
    if (!take_bytes(in, head, sizeof head) || head[0] >= NET_RULE_KINDS_ || head[1] > 1 ||
        head[2] > NET_PORTS_MAX)
        return false;
    ret->kind = (enum net_rule_kind)head[0];
    ret->own = head[1] == 1;
    ret->nports = head[2];
    if (!take_bytes(in, ret->ports, ret->nports * sizeof *ret->ports))
        return false;
    if (ret->kind == NET_RULE_ADDRESS)
        return take_range(in, &ret->range) && net_rule_is_good(ret);
    return take_bytes(in, &len, 1) && len < sizeof ret->name && take_bytes(in, ret->name, len) &&
           strlen(ret->name) == len && net_rule_is_good(ret);
}

static bool take_ranges(struct policy_in *in, uint32_t n, struct net_cidr **list, uint32_t *ret_n) {
    if (n > NET_DENY_MAX)
        return false;
    *list = n > 0 ? xcalloc(n, sizeof **list) : NULL;
    for (uint32_t i = 0; i < n; i++)
        if (!take_range(in, &(*list)[i]))
            return false;
    *ret_n = n;
    return true;
}

static bool take_policy(struct policy_in *in, struct net_policy *p) {
    struct policy_head head;
    if (!take_bytes(in, &head, sizeof head) || head.version != POLICY_VERSION ||
        head.mode >= NET_MODES_ || head.strict_tls >= NET_STRICTS_ || head.unreachable > 1 ||
        head.connections > NET_CONNECTIONS || head.nallow > NET_ALLOW_MAX)
        return false;
    p->mode = (enum net_mode)head.mode;
    p->strict_tls = (enum net_strict)head.strict_tls;
    p->unreachable = head.unreachable == 1;
    p->connections = head.connections;
    p->bytes = head.bytes;
    p->allow = head.nallow > 0 ? xcalloc(head.nallow, sizeof *p->allow) : NULL;
    for (uint32_t i = 0; i < head.nallow; i++)
        if (!take_rule(in, &p->allow[i]))
            return false;
    p->nallow = head.nallow;
    return take_ranges(in, head.ndeny, &p->deny, &p->ndeny) &&
           take_ranges(in, head.noperator, &p->operator, & p->noperator) && in->at == in->end;
}

int net_policy_decode(const void *data, size_t len, struct net_policy *ret, struct err *e) {
    struct policy_in in = {data, (const uint8_t *)data + len};
    *ret = (struct net_policy)NET_POLICY_INIT;
    if (take_policy(&in, ret))
        return 0;
    net_policy_done(ret);
    return err_set(e, EBADMSG, "these bytes are no policy");
}
