/* See policy_json.h. */

#include "net/policy_json.h"

#include "base/json.h"
#include "base/nearest.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define INVALID "network_rule_invalid"

struct policy_reader {
    const struct net_sets *sets;
    const char *where; /* what errors begin with */
    struct net_policy *p;
    bool full; /* a rule had no place */
};

/* ---- rules */

static void read_add_rule(void *arg, const struct net_rule *r) {
    struct policy_reader *in = arg;
    in->full = in->full || !net_policy_allow(in->p, r);
}

static int read_set(struct policy_reader *in, const char *name, size_t len, struct err *e) {
    if (net_sets_find(in->sets, name, len, read_add_rule, in))
        return 0;
    AUTO_BUF names = BUF_INIT;
    net_sets_names(in->sets, &names);
    return err_user(e, INVALID, "there is no set @%.*s, but %.200s", len > 40 ? 40 : (int)len, name,
                    names.data);
}

static int read_rule_text(struct policy_reader *in, const char *text, size_t len, struct err *e) {
    struct net_rule r;
    if (len > 0 && text[0] == '@')
        return read_set(in, text + 1, len - 1, e);
    if (net_rule_parse(text, len, &r, e) < 0)
        return -1;
    read_add_rule(in, &r);
    return 0;
}

static int read_ports(const json_t *ports, struct net_rule *r, struct err *e) {
    size_t i;
    const json_t *port;
    if (!json_is_array(ports) || json_array_size(ports) == 0)
        return err_user(e, INVALID, "ports is a list of numbers and ranges (\"8000-8010\")");
    json_array_foreach(ports, i, port) {
        char number[24];
        if (json_is_integer(port))
            snprintf(number, sizeof number, "%lld", (long long)json_integer_value(port));
        else if (!json_is_string(port))
            return err_user(e, INVALID, "ports[%zu] is neither a number nor a range", i);
        const char *text = json_is_string(port) ? json_string_value(port) : number;
        size_t len = json_is_string(port) ? json_string_length(port) : strlen(number);
        if (net_rule_add_port(r, text, len, e) < 0)
            return err_wrap(e, "ports[%zu]", i);
    }
    return 0;
}

static int read_rule_object(struct policy_reader *in, const json_t *rule, struct err *e) {
    const char *key;
    json_t *value;
    struct net_rule r;
    unsigned targets = 0;
    json_object_foreach((json_t *)(uintptr_t)rule, key, value) {
        bool name = strcmp(key, "domain") == 0, cidr = strcmp(key, "cidr") == 0;
        if (strcmp(key, "ports") == 0)
            continue;
        if (!name && !cidr && strcmp(key, "address") != 0)
            return err_user(e, INVALID, "there is no field \"%.40s\" in a rule", key);
        if (!json_is_string(value))
            return err_user(e, INVALID, "%s is a string", key);
        const char *text = json_string_value(value);
        size_t len = json_string_length(value);
        if (!name && !cidr && memchr(text, '/', len) != NULL)
            return err_user(e, INVALID, "an address has no '/': a range is a \"cidr\"");
        if (name ? net_rule_parse_name(text, len, &r, e) < 0
                 : net_rule_parse_address(text, len, &r, e) < 0)
            return -1;
        targets++;
    }
    if (targets != 1)
        return err_user(e, INVALID, "a rule has one of domain, address and cidr");
    const json_t *ports = json_object_get(rule, "ports");
    if (ports != NULL && !json_is_null(ports) && read_ports(ports, &r, e) < 0)
        return -1;
    read_add_rule(in, &r);
    return 0;
}

static int read_allow(struct policy_reader *in, const json_t *list, const char *field,
                      struct err *e) {
    size_t i;
    const json_t *rule;
    if (!json_is_array(list))
        return err_user(e, INVALID, "%s%s: it is a list of rules", in->where, field);
    json_array_foreach(list, i, rule) {
        int r = json_is_string(rule)
                    ? read_rule_text(in, json_string_value(rule), json_string_length(rule), e)
                : json_is_object(rule) ? read_rule_object(in, rule, e)
                                       : err_user(e, INVALID, "a rule is a string or an object");
        if (r < 0)
            return err_wrap(e, "%s%s[%zu]", in->where, field, i);
        if (in->full)
            return err_user(e, INVALID, "%s%s[%zu]: there are more than %d rules", in->where, field,
                            i, NET_ALLOW_MAX);
    }
    return 0;
}

static int read_denied(const char *text, size_t len, struct net_cidr *ret, struct err *e) {
    const char *why = net_cidr_parse(text, len, ret);
    return why == NULL ? 0 : err_user(e, INVALID, "%s", why);
}

typedef bool deny_fn(struct net_policy *p, const struct net_cidr *c);

static int read_deny(const json_t *list, const char *where, deny_fn *add, struct net_policy *p,
                     struct err *e) {
    size_t i;
    const json_t *range;
    struct net_cidr c;
    if (!json_is_array(list))
        return err_user(e, INVALID, "%s: it is a list of addresses and ranges", where);
    json_array_foreach(list, i, range) {
        if (!json_is_string(range))
            return err_user(e, INVALID, "%s[%zu]: it is a string", where, i);
        if (read_denied(json_string_value(range), json_string_length(range), &c, e) < 0)
            return err_wrap(e, "%s[%zu]", where, i);
        if (!add(p, &c))
            return err_user(e, INVALID, "%s[%zu]: there are more than %d", where, i, NET_DENY_MAX);
    }
    return 0;
}

/* ---- the other fields */

static int read_strict(struct policy_reader *in, const json_t *value, struct err *e) {
    if (!json_is_boolean(value))
        return err_user(e, INVALID, "%s.strict_tls: it is true or false", in->where);
    in->p->strict_tls = json_is_true(value) ? NET_STRICT_ON : NET_STRICT_OFF;
    return 0;
}

static int read_refuse(struct policy_reader *in, const json_t *value, struct err *e) {
    const char *text = json_is_string(value) ? json_string_value(value) : "";
    in->p->unreachable = strcmp(text, "unreachable") == 0;
    if (in->p->unreachable || strcmp(text, "denied") == 0)
        return 0;
    return err_user(e, INVALID, "%s.refuse: it is \"denied\" or \"unreachable\"", in->where);
}

static int read_number(struct policy_reader *in, const json_t *value, const char *field,
                       uint64_t most, uint64_t *ret, struct err *e) {
    if (!json_is_integer(value) || json_integer_value(value) < 1 ||
        (uint64_t)json_integer_value(value) > most)
        return err_user(e, INVALID, "%s.%s: it is a number from 1 to %llu", in->where, field,
                        (unsigned long long)most);
    *ret = (uint64_t)json_integer_value(value);
    return 0;
}

static int read_field(struct policy_reader *in, const char *key, const json_t *value,
                      struct err *e) {
    uint64_t n = 0;
    if (strcmp(key, "allow") == 0)
        return read_allow(in, value, ".allow", e);
    if (strcmp(key, "deny") == 0) {
        char where[64];
        snprintf(where, sizeof where, "%.50s.deny", in->where);
        return read_deny(value, where, net_policy_deny, in->p, e);
    }
    if (strcmp(key, "strict_tls") == 0)
        return read_strict(in, value, e);
    if (strcmp(key, "refuse") == 0)
        return read_refuse(in, value, e);
    if (strcmp(key, "bytes") == 0)
        return read_number(in, value, key, NET_BYTES_MAX, &in->p->bytes, e);
    if (strcmp(key, "connections") == 0) {
        int r = read_number(in, value, key, NET_CONNECTIONS, &n, e);
        in->p->connections = (uint32_t)n;
        return r;
    }
    if (strcmp(key, "open") == 0) {
        if (!json_is_boolean(value))
            return err_user(e, INVALID, "%s.open: it is true or false", in->where);
        in->p->mode = json_is_true(value) ? NET_OPEN : NET_RULES;
        return 0;
    }
    if (strcmp(key, "broad") == 0) /* our own words, sent back */
        return 0;
    return err_user(e, INVALID, "%s: there is no field \"%.40s\"", in->where, key);
}

static int read_object(struct policy_reader *in, const json_t *value, struct err *e) {
    const char *key;
    json_t *member;
    in->p->mode = NET_RULES;
    json_object_foreach((json_t *)(uintptr_t)value, key, member) {
        if (!json_is_null(member) && read_field(in, key, member, e) < 0)
            return -1;
    }
    if (in->p->mode == NET_OPEN && in->p->strict_tls == NET_STRICT_ON)
        return err_user(e, INVALID, "%s.strict_tls: it is for rules with names, not for \"open\"",
                        in->where);
    return 0;
}

static int read_word(struct policy_reader *in, const char *word, struct err *e) {
    if (strcmp(word, "none") == 0)
        return 0;
    if (strcmp(word, "open") != 0)
        return err_user(e, INVALID, "%s: it is \"none\", \"open\", a list of rules or an object",
                        in->where);
    in->p->mode = NET_OPEN;
    return 0;
}

static int read_value(struct policy_reader *in, const json_t *value, struct err *e) {
    if (json_is_object(value))
        return read_object(in, value, e);
    if (!json_is_array(value))
        return read_word(in, json_is_string(value) ? json_string_value(value) : "", e);
    in->p->mode = NET_RULES;
    return read_allow(in, value, "", e);
}

int net_policy_from_json(const struct json_t *value, const struct net_sets *sets, const char *where,
                         struct net_policy *ret, struct err *e) {
    *ret = (struct net_policy)NET_POLICY_INIT;
    struct policy_reader in = {.sets = sets, .where = where, .p = ret};
    if (read_value(&in, value, e) == 0)
        return 0;
    net_policy_done(ret);
    return -1;
}

/* ---- text */

/* The next word of a list with spaces or commas; a comma before ports belongs to their rule. False
 * at the end. */
static bool text_next(const char **text, size_t *len, const char **ret, size_t *ret_len) {
    static const char between[] = " \t\r\n,";
    while (*len > 0 && memchr(between, **text, sizeof between - 1) != NULL)
        (*text)++, (*len)--;
    size_t n = 0;
    while (n < *len) {
        const char *at = *text + n;
        if (*at == ',' && n + 1 < *len) {
            size_t word = 1;
            while (n + word < *len && memchr(between, at[word], sizeof between - 1) == NULL)
                word++;
            size_t ports = 1;
            while (ports < word && ((at[ports] >= '0' && at[ports] <= '9') || at[ports] == '-'))
                ports++;
            if (word == 1 || ports < word)
                break;
            n += word;
        } else if (memchr(between, *at, sizeof between - 1) != NULL) {
            break;
        } else {
            n++;
        }
    }
    *ret = *text;
    *ret_len = n;
    *text += n;
    *len -= n;
    return n > 0;
}

/* Takes the space around it away. "[2001:db8::1]:443" is a rule, not a list. */
static bool text_is_json(const char **text, size_t *len) {
    static const char space[] = " \t\r\n", value[] = "\"{[ \t\r\n";
    while (*len > 0 && memchr(space, (*text)[*len - 1], sizeof space - 1) != NULL)
        (*len)--;
    while (*len > 0 && memchr(space, **text, sizeof space - 1) != NULL)
        (*text)++, (*len)--;
    if (*len == 0 || (**text != '{' && **text != '['))
        return false;
    const char *end = memchr(*text, ']', *len);
    size_t inside = end != NULL ? (size_t)(end - *text) : 0;
    return **text == '{' || memchr(*text, ':', inside) == NULL ||
           memchr(value, (*text)[1], sizeof value - 1) != NULL;
}

static int read_words(struct policy_reader *in, const char *text, size_t len, struct err *e) {
    const char *word;
    size_t n;
    for (size_t i = 0; text_next(&text, &len, &word, &n); i++) {
        in->p->mode = NET_RULES;
        if (read_rule_text(in, word, n, e) < 0)
            return err_wrap(e, "%s[%zu]", in->where, i);
        if (in->full)
            return err_user(e, INVALID, "%s[%zu]: there are more than %d rules", in->where, i,
                            NET_ALLOW_MAX);
    }
    return 0;
}

/* A host called "opne" or "all" may exist; who means it says so. */
static int check_word(const char *text, size_t len, const char *where, struct err *e) {
    char word[NET_NAME_SIZE];
    if (len == 0 || net_name_clean(text, len, word) != NULL || memchr(text, '.', len) != NULL)
        return 0; /* more than a word, or nothing that a name could be */
    struct nearest like = {.word = word};
    nearest_offer(&like, "open");
    nearest_offer(&like, "none");
    return err_user(e, INVALID, "%s: \"%.63s\": did you mean %s? A host of that name is \"%.63s.\"",
                    where, word, nearest_found(&like) ? like.best : "\"open\" or \"none\"", word);
}

int net_policy_from_text(const char *text, size_t len, const struct net_sets *sets,
                         const char *where, struct net_policy *ret, struct err *e) {
    *ret = (struct net_policy)NET_POLICY_INIT;
    struct policy_reader in = {.sets = sets, .where = where, .p = ret};
    if (text_is_json(&text, &len)) {
        json_auto_t *value = NULL;
        if (json_read(text, len, 6, &value, e) < 0)
            return err_wrap(e, "%s", where);
        return net_policy_from_json(value, sets, where, ret, e);
    }
    if ((len == 4 && memcmp(text, "none", 4) == 0) || len == 0)
        return 0;
    if (len == 4 && memcmp(text, "open", 4) == 0) {
        ret->mode = NET_OPEN;
        return 0;
    }
    if (check_word(text, len, where, e) == 0 && read_words(&in, text, len, e) == 0)
        return 0;
    net_policy_done(ret);
    return -1;
}

int net_policy_deny_from_text(const char *text, size_t len, const char *where, struct net_policy *p,
                              struct err *e) {
    const char *word;
    size_t n;
    struct net_cidr c;
    if (text_is_json(&text, &len)) {
        json_auto_t *list = NULL;
        if (json_read(text, len, 2, &list, e) < 0)
            return err_wrap(e, "%s", where);
        return read_deny(list, where, net_policy_deny_operator, p, e);
    }
    for (size_t i = 0; text_next(&text, &len, &word, &n); i++) {
        if (read_denied(word, n, &c, e) < 0)
            return err_wrap(e, "%s[%zu]", where, i);
        if (!net_policy_deny_operator(p, &c))
            return err_user(e, INVALID, "%s[%zu]: there are more than %d", where, i, NET_DENY_MAX);
    }
    return 0;
}

/* ---- out */

static bool policy_is_plain(const struct net_policy *p) {
    return p->nallow == 0 && p->ndeny == 0 && p->strict_tls == NET_STRICT_DEFAULT &&
           !p->unreachable && p->connections == 0 && p->bytes == 0;
}

/* Wildcards over names of everybody: they are granted, and said again. */
static void write_broad(const struct net_policy *p, struct jw *j) {
    char rule[NET_RULE_TEXT];
    uint32_t i = net_policy_broad(p, 0);
    if (i == p->nallow)
        return;
    jw_key(j, "broad");
    jw_array(j);
    for (; i < p->nallow; i = net_policy_broad(p, i + 1))
        jw_str(j, net_rule_text(&p->allow[i], rule));
    jw_array_end(j);
}

static void write_lists(const struct net_policy *p, struct jw *j) {
    char rule[NET_RULE_TEXT], range[NET_CIDR_TEXT];
    jw_key(j, "allow");
    jw_array(j);
    for (uint32_t i = 0; i < p->nallow; i++)
        jw_str(j, net_rule_text(&p->allow[i], rule));
    jw_array_end(j);
    write_broad(p, j);
    if (p->ndeny == 0)
        return;
    jw_key(j, "deny");
    jw_array(j);
    for (uint32_t i = 0; i < p->ndeny; i++)
        jw_str(j, net_cidr_text(&p->deny[i], range));
    jw_array_end(j);
}

static const struct schema word_schema = {
    "NetworkWord", .value = &(struct field){.type = FIELD_STRING, WORDS("none", "open")}};
static const struct field rules_fields[] = {
    MAY_HAVE("open", FIELD_BOOL),
    HAS("allow", FIELD_LIST),
    MAY_HAVE("broad", FIELD_LIST, .help = "of those, the ones for names of everybody, as *.com"),
    MAY_HAVE("deny", FIELD_LIST),
    MAY_HAVE("strict_tls", FIELD_BOOL),
    MAY_HAVE("refuse", FIELD_STRING, WORDS("unreachable")),
    MAY_HAVE("connections", FIELD_INT),
    MAY_HAVE("bytes", FIELD_INT),
};
static const struct schema rules_schema = {SCHEMA("NetworkRules", rules_fields)};
const struct schema net_policy_schema = {"NetworkInForce", ONE_OF(&word_schema, &rules_schema)};

void net_policy_to_json(const struct net_policy *p, struct jw *j) {
    if (p->mode == NET_NONE || (p->mode == NET_OPEN && policy_is_plain(p))) {
        jw_str(j, p->mode == NET_NONE ? "none" : "open");
        return;
    }
    jw_object(j);
    if (p->mode == NET_OPEN)
        jw_key_bool(j, "open", true);
    write_lists(p, j);
    if (p->strict_tls != NET_STRICT_DEFAULT)
        jw_key_bool(j, "strict_tls", p->strict_tls == NET_STRICT_ON);
    if (p->unreachable)
        jw_key_str(j, "refuse", "unreachable");
    if (p->connections != 0)
        jw_key_uint(j, "connections", p->connections);
    if (p->bytes != 0)
        jw_key_uint(j, "bytes", p->bytes);
    jw_object_end(j);
}
