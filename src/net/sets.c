/* See sets.h. Sets do not name other sets. */

#include "net/sets.h"

#include "base/buf.h"
#include "base/json.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    const char *rules[6];
} sets_builtin[] = {
    {"pypi", {"pypi.org:443", "files.pythonhosted.org:443"}},
    {"npm", {"registry.npmjs.org:443"}},
    {"debian", {"deb.debian.org:80,443", "security.debian.org:80,443"}},
};

#define BUILTIN_ (sizeof sets_builtin / sizeof *sets_builtin)

void net_sets_done(struct net_sets *s) {
    for (uint32_t i = 0; i < s->n; i++)
        free(s->sets[i].rules);
    free(s->sets);
    *s = (struct net_sets){0};
}

static int sets_bad(struct err *e, const char *name, const char *why) {
    return err_user(e, "network_rule_invalid", "network_sets: %.40s: %s", name, why);
}

static bool set_name_is_good(const char *name) {
    size_t len = strlen(name);
    return len > 0 && len < sizeof((struct net_set *)0)->name &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") == len;
}

static int sets_read_set(const char *name, const json_t *list, struct net_set *ret, struct err *e) {
    if (!set_name_is_good(name))
        return sets_bad(e, name, "a set's name has at most 31 of a-z, 0-9, '-' and '_'");
    if (!json_is_array(list) || json_array_size(list) > NET_ALLOW_MAX)
        return sets_bad(e, name, "a set is a list of at most 256 rules");
    memcpy(ret->name, name, strlen(name) + 1);
    ret->rules = xcalloc(json_array_size(list) + 1, sizeof *ret->rules);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *rule = json_array_get(list, i);
        if (!json_is_string(rule))
            return sets_bad(e, name, "a rule is a string");
        if (net_rule_parse(json_string_value(rule), json_string_length(rule),
                           &ret->rules[ret->nrules], e) < 0)
            return err_wrap(e, "network_sets: %s[%zu]", name, i);
        ret->nrules++;
    }
    return 0;
}

int net_sets_from_text(const char *text, size_t len, struct net_sets *ret, struct err *e) {
    *ret = (struct net_sets){0};
    if (len == 0)
        return 0;
    json_auto_t *all = NULL;
    if (json_read(text, len, 4, &all, e) < 0)
        return err_wrap(e, "network_sets");
    if (!json_is_object(all) || json_object_size(all) > NET_SETS_MAX)
        return err_user(e, "network_rule_invalid",
                        "network_sets: it is an object of at most %d "
                        "sets: {\"NAME\": [\"RULE\", …]}",
                        NET_SETS_MAX);
    ret->sets = xcalloc(json_object_size(all) + 1, sizeof *ret->sets);
    const char *name;
    json_t *list;
    json_object_foreach(all, name, list) {
        if (sets_read_set(name, list, &ret->sets[ret->n++], e) < 0) {
            net_sets_done(ret);
            return -1;
        }
    }
    return 0;
}

bool net_sets_find(const struct net_sets *s, const char *name, size_t len, net_set_rule_fn *fn,
                   void *arg) {
    for (uint32_t i = 0; s != NULL && i < s->n; i++) {
        const struct net_set *set = &s->sets[i];
        if (strlen(set->name) != len || memcmp(set->name, name, len) != 0)
            continue;
        for (uint32_t k = 0; k < set->nrules; k++)
            fn(arg, &set->rules[k]);
        return true;
    }
    for (size_t i = 0; i < BUILTIN_; i++) {
        if (strlen(sets_builtin[i].name) != len || memcmp(sets_builtin[i].name, name, len) != 0)
            continue;
        for (const char *const *text = sets_builtin[i].rules; *text != NULL; text++) {
            struct net_rule r;
            struct err ignored;
            if (net_rule_parse(*text, strlen(*text), &r, &ignored) == 0)
                fn(arg, &r);
        }
        return true;
    }
    return false;
}

void net_sets_names(const struct net_sets *s, struct buf *to) {
    for (size_t i = 0; i < BUILTIN_; i++)
        buf_addf(to, "%s@%s", i > 0 ? ", " : "", sets_builtin[i].name);
    for (uint32_t i = 0; s != NULL && i < s->n; i++) {
        bool ours = false;
        for (size_t k = 0; k < BUILTIN_; k++)
            ours = ours || strcmp(s->sets[i].name, sets_builtin[k].name) == 0;
        if (!ours)
            buf_addf(to, ", @%s", s->sets[i].name);
    }
}
