/* A policy as a user's text and as the bytes that the gate gets: refused, or in bounds, the same
 * after a way there and back, and within itself. */

#include "base/json.h"
#include "net/judge.h"
#include "net/policy_json.h"
#include "net/within.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds) {
    if (!holds)
        abort();
}

static void write_json(const struct net_policy *p, struct buf *to) {
    struct jw j = JW_INIT(to);
    net_policy_to_json(p, &j);
}

static void judge(const struct net_policy *p) {
    struct net_addr a = {{0}};
    struct net_verdict v;
    if (p->nallow > 0)
        a = p->allow[p->nallow - 1].range.at;
    net_judge_again(p, NULL, &a, 443, "", NET_CHECK_NONE, "pypi.org", &v);
    must(v.errnum == 0 || v.detail[0] != '\0');
    must(v.errnum != 0 || !net_addr_is_never(&a));
    net_judge_name(p, "www.pypi.org", &v);
}

static void try_text(const char *text, size_t len) {
    AUTO_NET_POLICY p = NET_POLICY_INIT;
    AUTO_NET_POLICY again = NET_POLICY_INIT;
    AUTO_NET_POLICY decoded = NET_POLICY_INIT;
    AUTO_BUF json = BUF_INIT;
    AUTO_BUF other = BUF_INIT;
    AUTO_BUF bytes = BUF_INIT;
    struct err e;
    if (net_policy_from_text(text, len, NULL, "network", &p, &e) < 0) {
        must(p.mode == NET_NONE && p.allow == NULL && p.deny == NULL && e.text[0] != '\0');
        return;
    }
    for (uint32_t i = 0; i < p.nallow; i++)
        must(net_rule_is_good(&p.allow[i]));
    write_json(&p, &json);
    size_t word = json.data[0] == '"'; /* "none" and "open" without their quotes */
    must(net_policy_from_text(json.data + word, json.len - 2 * word, NULL, "x", &again, &e) == 0);
    write_json(&again, &other);
    must(strcmp(json.data, other.data) == 0);
    net_policy_encode(&p, &bytes);
    must(net_policy_decode(bytes.data, bytes.len, &decoded, &e) == 0);
    buf_clear(&other);
    write_json(&decoded, &other);
    must(strcmp(json.data, other.data) == 0);
    must(net_policy_within(&again, &p, "x", &e) == 0);
    judge(&p);
}

static void try_bytes(const void *data, size_t size) {
    AUTO_NET_POLICY p = NET_POLICY_INIT;
    AUTO_BUF again = BUF_INIT;
    struct err e;
    if (net_policy_decode(data, size, &p, &e) < 0) {
        must(p.mode == NET_NONE && p.allow == NULL);
        return;
    }
    net_policy_encode(&p, &again);
    must(again.len == size && memcmp(again.data, data, size) == 0);
    judge(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    AUTO_NET_SETS sets = {0};
    AUTO_NET_POLICY denied = NET_POLICY_INIT;
    struct err e;
    try_text((const char *)data, size);
    try_bytes(data, size);
    if (net_sets_from_text((const char *)data, size, &sets, &e) < 0)
        must(sets.n == 0);
    net_policy_deny_from_text((const char *)data, size, "x", &denied, &e);
    return 0;
}
