/* See judge.h. */

#include "net/judge.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- words */

/* "pypi.org:443", "[2001:db8::1]:443": what to ask for. A long name is cut in its middle. */
static const char *judge_wanted(const struct net_addr *address, uint16_t port, const char *name,
                                char to[NET_WORD_SIZE]) {
    struct net_rule r = {.kind = NET_RULE_ADDRESS};
    if (name != NULL && name[0] != '\0') {
        r.kind = NET_RULE_NAME;
        snprintf(r.name, sizeof r.name, "%s", name);
    } else if (address != NULL) {
        r.range = (struct net_cidr){*address, 128};
    }
    if (port != 0)
        r.ports[r.nports++] = (struct net_ports){port, port};
    return net_rule_word(&r, to);
}

const char *net_target_text(const struct net_addr *address, uint16_t port, const char *name,
                            char *to, size_t size) {
    char text[NET_ADDR_TEXT], word[NET_WORD_SIZE];
    net_addr_text(address, text);
    if (name != NULL && name[0] != '\0')
        snprintf(to, size, "%s (%s) port %u", judge_wanted(NULL, 0, name, word), text, port);
    else
        snprintf(to, size, "%s port %u", text, port);
    return to;
}

static void judge_add(char *to, size_t size, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void judge_add(char *to, size_t size, const char *fmt, ...) {
    size_t len = strlen(to);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(to + len, size - len, fmt, ap);
    va_end(ap);
}

/* "this sandbox may reach: a, b and 12 more; ask for X to be allowed" */
static void judge_detail(const struct net_policy *p, const char *wanted, char *to) {
    const size_t room = NET_DETAIL_SIZE - NET_WORD_SIZE - 48; /* for what stands behind the list */
    char word[NET_WORD_SIZE];
    to[0] = '\0';
    if (p->mode == NET_NONE)
        judge_add(to, NET_DETAIL_SIZE, "this sandbox has no network");
    else if (p->mode == NET_OPEN)
        judge_add(to, NET_DETAIL_SIZE, "this sandbox may reach every public address");
    else if (p->nallow == 0)
        judge_add(to, NET_DETAIL_SIZE, "this sandbox may reach nothing");
    else
        judge_add(to, NET_DETAIL_SIZE, "this sandbox may reach: ");
    for (uint32_t i = 0; p->mode == NET_RULES && i < p->nallow; i++) {
        net_rule_word(&p->allow[i], word);
        if (strlen(to) + strlen(word) + 2 > room) {
            judge_add(to, NET_DETAIL_SIZE, " and %u more", p->nallow - i);
            break;
        }
        judge_add(to, NET_DETAIL_SIZE, "%s%s", i > 0 ? ", " : "", word);
    }
    judge_add(to, NET_DETAIL_SIZE, "; ask for %s to be allowed", wanted);
}

void net_verdict_refuse(struct net_verdict *ret, const struct net_addr *address, uint16_t port,
                        const char *name, int errnum, const char *rule, const char *detail) {
    char target[NET_OP_SIZE - 16];
    *ret = (struct net_verdict){.errnum = errnum};
    net_target_text(address, port, name, target, sizeof target);
    snprintf(ret->op, sizeof ret->op, "connect to %s", target);
    snprintf(ret->rule, sizeof ret->rule, "%s", rule);
    snprintf(ret->name, sizeof ret->name, "%s", name != NULL ? name : "");
    snprintf(ret->detail, sizeof ret->detail, "%s", detail);
}

/* ---- addresses */

struct judge {
    const struct net_policy *p;
    const struct net_own *own;
    const struct net_addr *address;
    uint16_t port;
    const char *name; /* that is known for the address, or NULL */
};

static int judge_errnum(const struct net_policy *p) {
    return p->unreachable || p->mode == NET_NONE ? ENETUNREACH : EACCES;
}

static void judge_refuse(const struct judge *j, const char *rule, const char *detail,
                         struct net_verdict *ret) {
    net_verdict_refuse(ret, j->address, j->port, j->name, judge_errnum(j->p), rule, detail);
}

static void judge_allow(const struct judge *j, const char *rule, enum net_check check,
                        struct net_verdict *ret) {
    judge_refuse(j, rule, "", ret);
    ret->errnum = 0;
    ret->check = check;
}

static bool judge_is_own(const struct net_own *own, const struct net_addr *address) {
    for (size_t i = 0; own != NULL && i < own->n; i++)
        if (net_addr_same(&own->at[i], address))
            return true;
    return false;
}

/* The rule for addresses that allows it. SECURITY: a closed address needs a rule that was written
 * for its range ("0.0.0.0/0" is not), one of the host's a rule for just that address. */
static const struct net_rule *judge_rule(const struct judge *j, bool closed, bool own) {
    for (uint32_t i = 0; i < j->p->nallow; i++) {
        const struct net_rule *r = &j->p->allow[i];
        if (net_rule_has_address(r, j->address) && net_rule_has_port(r, j->port) &&
            (!closed || net_cidr_is_closed(&r->range)) && (!own || r->own))
            return r;
    }
    return NULL;
}

static const struct net_cidr *judge_denied(const struct net_cidr *list, uint32_t n,
                                           const struct net_addr *address) {
    for (uint32_t i = 0; i < n; i++)
        if (net_cidr_has(&list[i], address))
            return &list[i];
    return NULL;
}

static void judge_refuse_closed(const struct judge *j, const struct net_cidr *closed, bool own,
                                struct net_verdict *ret) {
    char detail[NET_DETAIL_SIZE], wanted[NET_WORD_SIZE], range[NET_CIDR_TEXT];
    judge_wanted(j->address, j->port, NULL, wanted);
    if (own)
        snprintf(detail, sizeof detail,
                 "it is an address of the host itself, which only a rule for just this address "
                 "opens; ask for %s to be allowed",
                 wanted);
    else if (net_addr_is_never(j->address))
        snprintf(detail, sizeof detail, "it lies in %s, which is never reached over a network",
                 net_cidr_text(closed, range));
    else
        snprintf(detail, sizeof detail,
                 "it lies in %s, which no name opens, but only a rule for addresses in it; ask "
                 "for %s to be allowed",
                 net_cidr_text(closed, range), wanted);
    judge_refuse(j, "network:closed-range", detail, ret);
}

/* What addresses alone decide. False: they do not. */
static bool judge_address(const struct judge *j, struct net_verdict *ret) {
    char text[NET_CIDR_TEXT], word[NET_WORD_SIZE], detail[NET_DETAIL_SIZE];
    const struct net_policy *p = j->p;
    if (p->mode == NET_NONE) {
        judge_detail(p, judge_wanted(j->address, j->port, j->name, word), detail);
        judge_refuse(j, "network:default-deny", detail, ret);
        return true;
    }
    const struct net_cidr *denied = judge_denied(p->operator, p->noperator, j->address);
    if (denied != NULL) {
        snprintf(detail, sizeof detail, "the operator of this server denies %s",
                 net_cidr_text(denied, text));
        judge_refuse(j, "network:operator", detail, ret);
        return true;
    }
    const struct net_cidr *closed = net_addr_closed(j->address);
    bool own = judge_is_own(j->own, j->address);
    const struct net_rule *r = judge_rule(j, closed != NULL, own);
    if ((r == NULL && (closed != NULL || own)) || net_addr_is_never(j->address)) {
        judge_refuse_closed(j, closed, own, ret);
        return true;
    }
    denied = judge_denied(p->deny, p->ndeny, j->address);
    if (denied != NULL) {
        snprintf(word, sizeof word, "network:deny %s", net_cidr_text(denied, text));
        snprintf(detail, sizeof detail, "this sandbox's network denies %s", text);
        judge_refuse(j, word, detail, ret);
        return true;
    }
    if (r != NULL)
        judge_allow(j, net_rule_word(r, word), NET_CHECK_NONE, ret);
    return r != NULL;
}

static void judge_by_name(const struct judge *j, const struct net_rule *r,
                          struct net_verdict *ret) {
    const struct net_policy *p = j->p;
    char word[NET_WORD_SIZE], detail[NET_DETAIL_SIZE];
    /* Where every address may be reached, whose name is said to it says nothing. */
    bool strict = p->strict_tls != NET_STRICT_OFF && p->mode != NET_OPEN;
    if (r != NULL) {
        judge_allow(j, net_rule_word(r, word),
                    strict && j->port == 443  ? NET_CHECK_TLS
                    : strict && j->port == 80 ? NET_CHECK_HTTP
                                              : NET_CHECK_NONE,
                    ret);
    } else if (p->mode == NET_OPEN) {
        judge_allow(j, "network:open", NET_CHECK_NONE, ret);
    } else {
        judge_detail(p, judge_wanted(j->address, j->port, j->name, word), detail);
        judge_refuse(j, "network:default-deny", detail, ret);
    }
}

void net_judge_connect(const struct net_policy *p, struct net_answers *a, const struct net_own *own,
                       const struct net_addr *address, uint16_t port, uint64_t now_ms,
                       struct net_verdict *ret) {
    struct judge j = {.p = p, .own = own, .address = address, .port = port};
    const struct net_rule *r = net_answers_find(a, p, address, port, now_ms, &j.name);
    if (!judge_address(&j, ret))
        judge_by_name(&j, r, ret);
}

/* The rule for names with this word, if it is for the port. */
static const struct net_rule *judge_find_word(const struct net_policy *p, const char *rule,
                                              uint16_t port) {
    char word[NET_WORD_SIZE];
    for (uint32_t i = 0; i < p->nallow; i++)
        if (p->allow[i].kind != NET_RULE_ADDRESS && net_rule_has_port(&p->allow[i], port) &&
            strcmp(net_rule_word(&p->allow[i], word), rule) == 0)
            return &p->allow[i];
    return NULL;
}

void net_judge_again(const struct net_policy *p, const struct net_own *own,
                     const struct net_addr *address, uint16_t port, const char *rule,
                     enum net_check check, const char *name, struct net_verdict *ret) {
    struct judge j = {.p = p, .own = own, .address = address, .port = port};
    const struct net_rule *r;
    if (name[0] != '\0') {
        j.name = name;
        r = net_policy_find_name(p, name, port);
    } else {
        r = judge_find_word(p, rule, port);
    }
    if (!judge_address(&j, ret))
        judge_by_name(&j, r, ret);
    /* SECURITY: under "open", say, it may have gone to any site at this address. */
    if (ret->errnum == 0 && ret->check != NET_CHECK_NONE && check == NET_CHECK_NONE)
        judge_refuse(&j, "network:strict-tls",
                     "the name that the connection says was not looked at when it was made; "
                     "connect again",
                     ret);
}

/* ---- names */

static bool judge_is_reverse(const char *name) {
    static const struct net_rule arpa = {.kind = NET_RULE_BELOW, .name = "arpa"};
    return net_rule_has_name(&arpa, name);
}

void net_judge_name(const struct net_policy *p, const char *name, struct net_verdict *ret) {
    char clean[NET_NAME_SIZE], word[NET_WORD_SIZE];
    bool good = net_name_clean(name, strlen(name), clean) == NULL;
    const struct net_rule *r = good ? net_policy_find_name(p, clean, 0) : NULL;
    *ret = (struct net_verdict){0};
    snprintf(ret->op, sizeof ret->op, "look up the name %s", judge_wanted(NULL, 0, name, word));
    snprintf(ret->name, sizeof ret->name, "%s", name);
    if (r != NULL && p->mode != NET_NONE) {
        net_rule_word(r, ret->rule);
        return;
    }
    if (p->mode == NET_OPEN && good && !judge_is_reverse(clean)) {
        snprintf(ret->rule, sizeof ret->rule, "network:open");
        return;
    }
    ret->errnum = ENOENT;
    snprintf(ret->rule, sizeof ret->rule, "network:default-deny");
    if (good)
        judge_detail(p, judge_wanted(NULL, 0, clean, word), ret->detail);
    else
        snprintf(ret->detail, sizeof ret->detail, "it is no name of a host");
    if (good && judge_is_reverse(clean))
        ret->op[0] = '\0';
}

bool net_judge_answer(const struct net_policy *p, const struct net_own *own,
                      const struct net_addr *address) {
    return net_addr_closed(address) == NULL && !judge_is_own(own, address) &&
           judge_denied(p->operator, p->noperator, address) == NULL &&
           judge_denied(p->deny, p->ndeny, address) == NULL;
}

void net_judge_hello(const struct net_policy *p, enum net_check check,
                     const struct net_addr *address, uint16_t port, const char *name,
                     struct net_verdict *ret) {
    struct judge j = {.p = p, .address = address, .port = port, .name = name};
    char clean[NET_NAME_SIZE], word[NET_WORD_SIZE], detail[NET_DETAIL_SIZE];
    const char *what = check == NET_CHECK_HTTP ? "Host" : "server name (SNI)";
    bool good = net_name_clean(name, strlen(name), clean) == NULL;
    const struct net_rule *r = good ? net_policy_find_name(p, clean, port) : NULL;
    if (r != NULL) {
        judge_allow(&j, net_rule_word(r, word), check, ret);
        return;
    }
    if (name[0] == '\0')
        snprintf(detail, sizeof detail,
                 "on this port the connection must say the name of an allowed host, and it said "
                 "no %s",
                 what);
    else
        snprintf(detail, sizeof detail,
                 "the connection says another %s than is allowed; ask for %s to be allowed", what,
                 judge_wanted(address, port, name, word));
    judge_refuse(&j, "network:strict-tls", detail, ret);
}
