#pragma once
/* A rule: names or addresses, and ports.
 *
 *   pypi.org  pypi.org:443  *.example.org:80,443  10.1.0.0/16  203.0.113.9:8000-8010
 *   2001:db8::/32  [2001:db8::1]:443  [2001:db8::/32]:443
 *
 * "*.x" is every name below x and not x itself. A rule without ports is for all ports. */

#include "base/err.h"
#include "net/addr.h"
#include "net/bounds.h"

enum net_rule_kind { NET_RULE_NAME, NET_RULE_BELOW, NET_RULE_ADDRESS, NET_RULE_KINDS_ };

struct net_ports {
    uint16_t from, to;
};

struct net_rule {
    enum net_rule_kind kind;
    /* SECURITY: may open an address of the host itself. Only a single address is, and after
     * net_policy_within only where the operator's maximum names that single address, too. */
    bool own;
    uint8_t nports; /* 0: all */
    struct net_ports ports[NET_PORTS_MAX];
    struct net_cidr range;    /* NET_RULE_ADDRESS */
    char name[NET_NAME_SIZE]; /* lower case, without "*." and a dot at the end */
};

/* A rule as text. 0, or -1: e->text says what is wrong with it, in words that go behind the name
 * of the entry. */
int net_rule_parse(const char *text, size_t len, struct net_rule *ret, struct err *e);
/* The target alone, as in {"domain": …}: without ports. */
int net_rule_parse_name(const char *text, size_t len, struct net_rule *ret, struct err *e);
int net_rule_parse_address(const char *text, size_t len, struct net_rule *ret, struct err *e);
/* "443", "8000-8010". */
int net_rule_add_port(struct net_rule *r, const char *text, size_t len, struct err *e);
/* From outside: everything in bounds and in its one form. */
bool net_rule_is_good(const struct net_rule *r);

/* All of it, as net_rule_parse reads it. Returns `to`. */
#define NET_RULE_TEXT (NET_NAME_SIZE + NET_PORTS_MAX * 12 + 8)
const char *net_rule_text(const struct net_rule *r, char to[NET_RULE_TEXT]);
/* The same in at most 99 bytes, with "..." for the middle of a longer one: what messages, receipts
 * and `denied` call the rule. Returns `to`. */
const char *net_rule_word(const struct net_rule *r, char to[NET_WORD_SIZE]);

/* `name` as net_name_clean writes it. */
bool net_rule_has_name(const struct net_rule *r, const char *name);
bool net_rule_has_address(const struct net_rule *r, const struct net_addr *a);
bool net_rule_has_port(const struct net_rule *r, uint16_t port);
/* Whether all names or addresses of `inner` are of `outer`. Ports do not count. */
bool net_rule_covers(const struct net_rule *outer, const struct net_rule *inner);
/* "*.com", "*.co.uk": names of everybody. */
bool net_rule_is_broad(const struct net_rule *r);

/* A name in its one form: lower case, no dot at the end, labels of letters, digits, '-' and '_'.
 * NULL, or why it is none. What looks like an IPv4 address is none. */
const char *net_name_clean(const char *text, size_t len, char ret[NET_NAME_SIZE]);
