/* See rules.h. The server reads them again; here they are looked at, so that an operator hears of a
 * mistake at once, and of which entry it is in. */

#include "config/rules.h"

#include "config/config.h"
#include "net/policy_json.h"
#include "net/within.h"

#include <string.h>

static int check_resolvers(const char *text, struct err *e) {
    while (*text) {
        size_t n = strcspn(text, ", ");
        struct net_rule r;
        struct err why;
        /* An address with a port or without is a rule, too. */
        if (n && (net_rule_parse(text, n, &r, &why) < 0 || r.kind != NET_RULE_ADDRESS ||
                  r.range.bits != 128 || r.nports > 1))
            return err_user(e, "bad_value",
                            "network_resolvers has \"%.*s\"; it takes addresses: "
                            "192.0.2.1, 192.0.2.1:53, [2001:db8::1]:53",
                            n < 60 ? (int)n : 60, text);
        text += n + (text[n] != '\0');
    }
    return 0;
}

/* What some sandboxes are given is asked for as anybody asks. */
static int check_given(const char *text, const char *where, const struct net_sets *sets,
                       const struct net_policy *most, struct err *e) {
    AUTO_NET_POLICY p = NET_POLICY_INIT;
    if (net_policy_from_text(text, strlen(text), sets, where, &p, e) < 0)
        return -1;
    return net_policy_within(&p, most, where, e);
}

int rules_check(const struct config *c, struct err *e) {
    AUTO_NET_SETS sets = {0};
    AUTO_NET_POLICY p = NET_POLICY_INIT;
    AUTO_NET_POLICY builds = NET_POLICY_INIT;
    struct err why;
    if (net_sets_from_text(c->network_sets, strlen(c->network_sets), &sets, &why) < 0 ||
        net_policy_from_text(c->network, strlen(c->network), &sets, "network", &p, &why) < 0 ||
        net_policy_deny_from_text(c->network_deny, strlen(c->network_deny), "network_deny", &p,
                                  &why) < 0 ||
        check_given(c->shared_domains, "ipybox_allowed_domains", &sets, &p, &why) < 0 ||
        check_given(c->mcp_network, "mcp_network", &sets, &p, &why) < 0 ||
        net_policy_from_text(c->build_network, strlen(c->build_network), &sets, "build_network",
                             &builds, &why) < 0)
        return err_user(e, "bad_value", "%s", why.text);
    return check_resolvers(c->network_resolvers, e);
}
