/* See terms.h. */

#include "engine/network/terms.h"

#include "base/json.h"
#include "config/config.h"
#include "net/policy_json.h"
#include "net/within.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define WHERE "network"

struct network_rules {
    struct net_sets sets;
    struct net_policy most; /* and what is denied to everybody, as its `operator` */
};

void network_terms_free(struct network_terms *t) {
    if (!t)
        return;
    buf_done(&t->json);
    buf_done(&t->packed);
    buf_done(&t->warnings);
    free(t);
}

void network_rules_free(struct network_rules *r) {
    if (!r)
        return;
    net_sets_done(&r->sets);
    net_policy_done(&r->most);
    free(r);
}

struct network_rules *network_rules_read(const struct config *c, struct err *e) {
    struct network_rules *r = xcalloc(1, sizeof *r);
    const char *deny = c->network_deny;
    if (net_sets_from_text(c->network_sets, strlen(c->network_sets), &r->sets, e) == 0 &&
        net_policy_from_text(c->network, strlen(c->network), &r->sets, WHERE, &r->most, e) == 0 &&
        net_policy_deny_from_text(deny, strlen(deny), "network_deny", &r->most, e) == 0)
        return r;
    network_rules_free(r);
    return NULL;
}

void network_rules_put(const struct network_rules *r, struct jw *j) {
    net_policy_to_json(&r->most, j);
}

void network_rules_put_sets(const struct network_rules *r, struct jw *j) {
    AUTO_BUF names = BUF_INIT;
    net_sets_names(&r->sets, &names);
    jw_array(j);
    for (const char *at = names.data; *at;) {
        size_t n = strcspn(at, ", ");
        if (n)
            jw_strn(j, at, n);
        at += n + (at[n] != '\0');
    }
    jw_array_end(j);
}

int network_rules_check(const struct network_rules *r, const char *text, struct err *e) {
    AUTO_NET_POLICY p = NET_POLICY_INIT;
    return net_policy_from_text(text, strlen(text), &r->sets, WHERE, &p, e);
}

/* A key narrows what the server grants, and adds nothing. */
static int hold(const struct network_rules *r, const char *key, struct net_policy *p,
                struct err *e) {
    if (net_policy_within(p, &r->most, WHERE, e) < 0)
        return -1;
    if (!key)
        return 0;
    AUTO_NET_POLICY own = NET_POLICY_INIT;
    if (net_policy_from_text(key, strlen(key), &r->sets, "network of the key", &own, e) < 0)
        return -1;
    return net_policy_within(p, &own, WHERE, e);
}

static struct network_terms *terms_new(const struct net_policy *p) {
    struct network_terms *t = xcalloc(1, sizeof *t);
    t->json = t->packed = t->warnings = (struct buf)BUF_INIT;
    t->is_none = p->mode == NET_NONE;
    t->bytes = p->bytes;
    net_policy_encode(p, &t->packed);
    return t;
}

static void add_warnings(const struct net_policy *p, struct buf *to) {
    char word[NET_WORD_SIZE];
    for (uint32_t i = 0; (i = net_policy_broad(p, i)) < p->nallow; i++)
        buf_addf(to, "network: %s is names of everybody, not of one owner\n",
                 net_rule_word(&p->allow[i], word));
}

static struct network_terms *terms_of(const struct net_policy *p) {
    struct network_terms *t = terms_new(p);
    add_warnings(p, &t->warnings);
    struct jw j = JW_INIT(&t->json);
    net_policy_to_json(p, &j);
    return t;
}

struct network_terms *network_terms_of(const char *json, const struct buf *packed, struct err *e) {
    AUTO_NET_POLICY p = NET_POLICY_INIT;
    e->code = 0;
    if (net_policy_decode(packed->data, packed->len, &p, e) < 0)
        return terms_of(&p); /* SECURITY: less than was granted, never more */
    struct network_terms *t = terms_new(&p);
    buf_adds(&t->json, json);
    return t;
}

struct network_terms *network_terms_read(const struct network_rules *r, const struct json_t *value,
                                         const char *key, struct err *e) {
    AUTO_NET_POLICY p = NET_POLICY_INIT;
    if (json_is_string(value))
        return network_terms_parse(r, json_string_value(value), key, e);
    if (net_policy_from_json(value, &r->sets, WHERE, &p, e) < 0 || hold(r, key, &p, e) < 0)
        return NULL;
    return terms_of(&p);
}

static struct network_terms *parse(const struct network_rules *r, const char *text, const char *key,
                                   bool unreachable, struct err *e) {
    AUTO_NET_POLICY p = NET_POLICY_INIT;
    if (net_policy_from_text(text, strlen(text), &r->sets, WHERE, &p, e) < 0 ||
        hold(r, key, &p, e) < 0)
        return NULL;
    p.unreachable |= unreachable && p.mode != NET_NONE;
    return terms_of(&p);
}

struct network_terms *network_terms_parse(const struct network_rules *r, const char *text,
                                          const char *key, struct err *e) {
    return parse(r, text, key, false, e);
}

struct network_terms *network_terms_unreachable(const struct network_rules *r, const char *text,
                                                const char *key, struct err *e) {
    return parse(r, text, key, true, e);
}

/* Whichever of the two is the narrower. */
struct network_terms *network_terms_most(const struct network_rules *r, const char *key,
                                         struct err *e) {
    AUTO_NET_POLICY p = NET_POLICY_INIT;
    struct err ignored;
    net_policy_copy(&r->most, &p);
    if (hold(r, key, &p, &ignored) == 0)
        return terms_of(&p);
    return network_terms_parse(r, key, NULL, e);
}
