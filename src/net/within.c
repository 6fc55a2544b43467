/* A request against the most that may be granted.
 *
 * Each rule of the request must be covered by rules of the maximum, port by port; nothing is cut
 * to fit, since a program that gets less than it asked for fails later and in other words. */

#include "net/within.h"

#include <stdio.h>
#include <string.h>

#define NOT_ALLOWED "network_not_allowed"

/* Whether "open" of the maximum grants it: any name, and addresses outside of closed ranges. A wide
 * range ("0.0.0.0/0") is granted since it opens no closed one. */
static bool within_open(const struct net_policy *most, const struct net_rule *r) {
    return most->mode == NET_OPEN &&
           (r->kind != NET_RULE_ADDRESS || !net_cidr_is_closed(&r->range));
}

/* SECURITY: what lies in a closed range is opened by a rule within it only, so a wider one of the
 * maximum, which opens nothing there itself, does not grant it. */
static bool within_covers(const struct net_rule *m, const struct net_rule *r) {
    bool closed = r->kind == NET_RULE_ADDRESS && net_cidr_is_closed(&r->range);
    return net_rule_covers(m, r) && (!closed || net_cidr_is_closed(&m->range));
}

/* The port behind the ones from `from` on that this rule of the maximum grants. */
static uint32_t within_next(const struct net_rule *m, uint32_t from) {
    if (m->nports == 0)
        return 65536;
    for (unsigned i = 0; i < m->nports; i++)
        if (m->ports[i].from <= from && from <= m->ports[i].to)
            return m->ports[i].to + 1u;
    return from;
}

/* Whether the rules of the maximum, or only those for a single address that may be the host's own,
 * grant all ports of this one. */
static bool within_ports(const struct net_policy *most, const struct net_rule *r,
                         const struct net_ports *ports, bool own) {
    uint32_t at = ports->from, before;
    do {
        before = at;
        for (uint32_t i = 0; i < most->nallow && at <= ports->to; i++)
            if ((!own || most->allow[i].own) && within_covers(&most->allow[i], r))
                at = within_next(&most->allow[i], at);
    } while (at != before);
    return at > ports->to;
}

static bool within_rules(const struct net_policy *most, const struct net_rule *r, bool own) {
    static const struct net_ports all = {1, 65535};
    if (r->nports == 0)
        return within_ports(most, r, &all, own);
    for (unsigned i = 0; i < r->nports; i++)
        if (!within_ports(most, r, &r->ports[i], own))
            return false;
    return true;
}

static bool within_rule(const struct net_policy *most, struct net_rule *r) {
    r->own = r->own && within_rules(most, r, true);
    return r->own || within_open(most, r) || within_rules(most, r, false);
}

static int within_bounds(struct net_policy *p, const struct net_policy *most, const char *where,
                         struct err *e) {
    if (p->connections > net_policy_connections(most))
        return err_user(e, NOT_ALLOWED, "%s.connections: at most %u are granted", where,
                        net_policy_connections(most));
    if (most->bytes != 0 && p->bytes > most->bytes)
        return err_user(e, NOT_ALLOWED, "%s.bytes: at most %llu are granted", where,
                        (unsigned long long)most->bytes);
    /* A maximum of names is one of names, not of whatever is at their addresses. */
    if (p->strict_tls == NET_STRICT_OFF && most->strict_tls != NET_STRICT_OFF &&
        most->mode != NET_OPEN)
        return err_user(e, NOT_ALLOWED, "%s.strict_tls: it may not be turned off", where);
    if (p->connections == 0)
        p->connections = most->connections;
    if (p->bytes == 0)
        p->bytes = most->bytes;
    return 0;
}

static int within_denied(struct net_policy *p, const struct net_policy *most, const char *where,
                         struct err *e) {
    bool room = true;
    for (uint32_t i = 0; i < most->noperator; i++)
        room = room && net_policy_deny_operator(p, &most->operator[i]);
    for (uint32_t i = 0; i < most->ndeny; i++)
        room = room && net_policy_deny_operator(p, &most->deny[i]);
    return room ? 0
                : err_user(e, NOT_ALLOWED, "%s: the operator denies more than %d ranges", where,
                           NET_DENY_MAX);
}

int net_policy_within(struct net_policy *p, const struct net_policy *most, const char *where,
                      struct err *e) {
    if (p->mode == NET_NONE || (p->mode == NET_RULES && p->nallow == 0))
        return 0; /* nothing is asked for */
    if (most->mode == NET_NONE)
        return err_user(e, NOT_ALLOWED, "%s: no network is granted", where);
    if (p->mode == NET_OPEN && most->mode != NET_OPEN)
        return err_user(e, NOT_ALLOWED, "%s: \"open\" is not granted", where);
    for (uint32_t i = 0; i < p->nallow; i++) {
        char word[NET_WORD_SIZE];
        if (!within_rule(most, &p->allow[i]))
            return err_user(e, NOT_ALLOWED, "%s: %s is not granted", where,
                            net_rule_word(&p->allow[i], word));
    }
    return within_bounds(p, most, where, e) < 0 ? -1 : within_denied(p, most, where, e);
}
