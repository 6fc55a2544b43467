/* See rule.h. */

#include "net/rule.h"

#include "base/num.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- names */

static bool name_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

/* One label, of which the characters are good. */
static const char *name_label(const char *label, size_t len) {
    if (len == 0)
        return "two dots stand together, or one stands first";
    if (len > 63)
        return "a part of it is longer than 63 characters";
    if (label[0] == '-' || label[len - 1] == '-')
        return "a part of it begins or ends with '-'";
    return NULL;
}

const char *net_name_clean(const char *text, size_t len, char ret[NET_NAME_SIZE]) {
    char name[NET_NAME_SIZE];
    if (len > 1 && text[len - 1] == '.')
        len--;
    if (len == 0)
        return "it is empty";
    if (len >= sizeof name)
        return "it is longer than 253 characters";
    size_t label = 0;
    for (size_t i = 0; i <= len; i++) {
        const char *why = NULL;
        if (i < len && text[i] != '.') {
            name[i] = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] | 0x20) : text[i];
            if (!name_char(name[i]))
                return "a name has letters, digits, '-', '_' and dots only (an international one "
                       "is written with xn--)";
            continue;
        }
        name[i] = '.';
        if ((why = name_label(name + label, i - label)) != NULL)
            return why;
        if (i == len)
            break;
        label = i + 1;
    }
    /* WHATWG's rule: whatever ends in a number is meant as an address. */
    if (strspn(name + label, "0123456789") >= len - label ||
        (name[label] == '0' && name[label + 1] == 'x'))
        return "it ends in a number, but is no address";
    name[len] = '\0';
    memcpy(ret, name, len + 1);
    return NULL;
}

/* ---- text in */

static int rule_bad(struct err *e, const char *why) {
    return err_user(e, "network_rule_invalid", "%s", why);
}

int net_rule_add_port(struct net_rule *r, const char *text, size_t len, struct err *e) {
    char copy[16];
    if (len == 0 || len >= sizeof copy || memchr(text, '\0', len) != NULL)
        return rule_bad(e, "a port is a number from 1 to 65535, or two with '-' between them");
    memcpy(copy, text, len);
    copy[len] = '\0';
    if (r->nports == NET_PORTS_MAX)
        return err_user(e, "network_rule_invalid", "it has more than %d ports", NET_PORTS_MAX);
    static const struct num_rule bounds = {.field = "port", .min = 1, .max = 65535};
    char *dash = strchr(copy, '-');
    if (dash != NULL)
        *dash++ = '\0';
    uint32_t from, to;
    struct err ignored;
    if (num_u32(copy, &bounds, &from, &ignored) < 0 ||
        num_u32(dash != NULL ? dash : copy, &bounds, &to, &ignored) < 0)
        return rule_bad(e, "a port is a number from 1 to 65535, or two with '-' between them");
    if (from > to)
        return rule_bad(e, "the first port of a range is larger than its last");
    r->ports[r->nports++] = (struct net_ports){(uint16_t)from, (uint16_t)to};
    return 0;
}

int net_rule_parse_name(const char *text, size_t len, struct net_rule *ret, struct err *e) {
    struct net_rule r = {.kind = NET_RULE_NAME};
    if (len >= 1 && text[0] == '*') {
        if (len < 2 || text[1] != '.')
            return rule_bad(e, len == 1 ? "for every public address say \"open\""
                                        : "'*' stands first, with a dot behind it: \"*.x\"");
        r.kind = NET_RULE_BELOW;
        text += 2;
        len -= 2;
    }
    if (memchr(text, '*', len) != NULL)
        return rule_bad(e, "'*' stands first, with a dot behind it: \"*.x\"");
    const char *why = net_name_clean(text, len, r.name);
    if (why != NULL)
        return rule_bad(e, why);
    /* However it is written: it would be something else as a policy of its own. */
    if (r.kind == NET_RULE_NAME && (strcmp(r.name, "open") == 0 || strcmp(r.name, "none") == 0))
        return err_user(e, "network_rule_invalid", "\"%s\" stands alone, not in a list", r.name);
    *ret = r;
    return 0;
}

int net_rule_parse_address(const char *text, size_t len, struct net_rule *ret, struct err *e) {
    struct net_rule r = {.kind = NET_RULE_ADDRESS};
    const char *why = net_cidr_parse(text, len, &r.range);
    const char *slash = memchr(text, '/', len);
    struct net_addr a;
    if (slash != NULL && !net_addr_parse(text, (size_t)(slash - text), &a))
        return rule_bad(e, "before the '/' stands no address (a rule has no path)");
    if (why != NULL)
        return rule_bad(e, why);
    if (net_cidr_is_never(&r.range))
        return rule_bad(e, "it is the sandbox's own, or nobody's, and needs no rule");
    r.own = r.range.bits == 128;
    *ret = r;
    return 0;
}

static int rule_ports(const char *text, size_t len, struct net_rule *r, struct err *e) {
    for (;;) {
        const char *comma = memchr(text, ',', len);
        size_t n = comma != NULL ? (size_t)(comma - text) : len;
        if (net_rule_add_port(r, text, n, e) < 0)
            return -1;
        if (comma == NULL)
            return 0;
        text = comma + 1;
        len -= n + 1;
    }
}

/* Digits, dots and a '/' only, or colons: nothing that a name could be. */
static bool rule_is_address(const char *text, size_t len) {
    struct net_addr a;
    const char *slash = memchr(text, '/', len);
    return slash != NULL || net_addr_parse(text, len, &a);
}

/* "[2001:db8::1]:443" */
static int rule_bracketed(const char *text, size_t len, struct net_rule *ret, struct err *e) {
    const char *end = memchr(text, ']', len);
    if (end == NULL)
        return rule_bad(e, "']' is missing");
    const char *inner = text + 1;
    size_t ninner = (size_t)(end - inner), behind = len - ninner - 2;
    if (memchr(inner, ':', ninner) == NULL)
        return rule_bad(e, "an IPv6 address stands in brackets");
    if (net_rule_parse_address(inner, ninner, ret, e) < 0)
        return -1;
    if (behind == 0)
        return 0;
    if (end[1] != ':')
        return rule_bad(e, "behind ']' stands ':' and the ports");
    return rule_ports(end + 2, behind - 1, ret, e);
}

int net_rule_parse(const char *text, size_t len, struct net_rule *ret, struct err *e) {
    struct net_rule r;
    if (len > 0 && text[0] == '[') {
        if (rule_bracketed(text, len, &r, e) < 0)
            return -1;
        *ret = r;
        return 0;
    }
    if (memmem(text, len, "://", 3) != NULL)
        return rule_bad(e, "a rule is a name or an address, not a URL");
    const char *colon = memchr(text, ':', len);
    /* With two colons it is an IPv6 address; its ports need brackets. */
    if (colon != NULL && memchr(colon + 1, ':', len - (size_t)(colon + 1 - text)) != NULL)
        colon = NULL;
    size_t target = colon != NULL ? (size_t)(colon - text) : len;
    bool v6 = colon == NULL && memchr(text, ':', len) != NULL;
    if (v6 || rule_is_address(text, target) ? net_rule_parse_address(text, target, &r, e) < 0
                                            : net_rule_parse_name(text, target, &r, e) < 0)
        return -1;
    if (colon != NULL && rule_ports(colon + 1, len - target - 1, &r, e) < 0)
        return -1;
    *ret = r;
    return 0;
}

bool net_rule_is_good(const struct net_rule *r) {
    if (r->nports > NET_PORTS_MAX)
        return false;
    for (unsigned i = 0; i < r->nports; i++)
        if (r->ports[i].from == 0 || r->ports[i].from > r->ports[i].to)
            return false;
    if (r->kind == NET_RULE_ADDRESS)
        return net_cidr_is_good(&r->range) && r->name[0] == '\0' &&
               (!r->own || r->range.bits == 128);
    char again[NET_NAME_SIZE];
    size_t len = strnlen(r->name, sizeof r->name);
    return r->kind < NET_RULE_KINDS_ && !r->own && len < sizeof r->name &&
           net_name_clean(r->name, len, again) == NULL && strcmp(again, r->name) == 0;
}

/* ---- text out */

const char *net_rule_text(const struct net_rule *r, char to[NET_RULE_TEXT]) {
    char range[NET_CIDR_TEXT];
    int n;
    if (r->kind == NET_RULE_ADDRESS) {
        net_cidr_text(&r->range, range);
        bool brackets = r->nports > 0 && strchr(range, ':') != NULL;
        n = snprintf(to, NET_RULE_TEXT, brackets ? "[%s]" : "%s", range);
    } else {
        n = snprintf(to, NET_RULE_TEXT, "%s%s", r->kind == NET_RULE_BELOW ? "*." : "", r->name);
    }
    size_t len = (size_t)n;
    for (unsigned i = 0; i < r->nports && len < NET_RULE_TEXT; i++) {
        const struct net_ports *p = &r->ports[i];
        size_t left = NET_RULE_TEXT - len;
        n = snprintf(to + len, left, p->from == p->to ? "%c%u" : "%c%u-%u", i == 0 ? ':' : ',',
                     p->from, p->to);
        len += (size_t)n;
    }
    return to;
}

const char *net_rule_word(const struct net_rule *r, char to[NET_WORD_SIZE]) {
    char text[NET_RULE_TEXT];
    net_rule_text(r, text);
    size_t len = strlen(text);
    if (len < NET_WORD_SIZE) {
        memcpy(to, text, len + 1);
        return to;
    }
    /* The end of a name says more than its beginning. */
    enum { BEFORE = 24, BEHIND = NET_WORD_SIZE - 1 - BEFORE - 3 };
    snprintf(to, NET_WORD_SIZE, "%.*s...%s", BEFORE, text, text + len - BEHIND);
    return to;
}

/* ---- what it is for */

/* Whether `name` lies below the other one. */
static bool rule_is_below(const char *name, const char *top) {
    size_t n = strlen(name), t = strlen(top);
    return n > t + 1 && name[n - t - 1] == '.' && memcmp(name + n - t, top, t) == 0;
}

bool net_rule_has_name(const struct net_rule *r, const char *name) {
    if (r->kind == NET_RULE_NAME)
        return strcmp(r->name, name) == 0;
    return r->kind == NET_RULE_BELOW && rule_is_below(name, r->name);
}

bool net_rule_has_address(const struct net_rule *r, const struct net_addr *a) {
    return r->kind == NET_RULE_ADDRESS && net_cidr_has(&r->range, a);
}

bool net_rule_has_port(const struct net_rule *r, uint16_t port) {
    for (unsigned i = 0; i < r->nports; i++)
        if (port >= r->ports[i].from && port <= r->ports[i].to)
            return true;
    return r->nports == 0;
}

bool net_rule_covers(const struct net_rule *outer, const struct net_rule *inner) {
    if (outer->kind == NET_RULE_ADDRESS || inner->kind == NET_RULE_ADDRESS)
        return outer->kind == inner->kind && net_cidr_within(&inner->range, &outer->range);
    if (inner->kind == NET_RULE_NAME)
        return net_rule_has_name(outer, inner->name);
    return outer->kind == NET_RULE_BELOW &&
           (strcmp(inner->name, outer->name) == 0 || rule_is_below(inner->name, outer->name));
}

bool net_rule_is_broad(const struct net_rule *r) {
    static const char *const second[] = {"ac", "co", "com", "edu", "gov", "ne", "net", "or", "org"};
    const char *dot = strchr(r->name, '.');
    if (r->kind != NET_RULE_BELOW)
        return false;
    if (dot == NULL)
        return true;
    if (strchr(dot + 1, '.') != NULL || strlen(dot + 1) != 2)
        return false;
    for (size_t i = 0; i < sizeof second / sizeof *second; i++)
        if (strlen(second[i]) == (size_t)(dot - r->name) &&
            memcmp(second[i], r->name, strlen(second[i])) == 0)
            return true;
    return false;
}
