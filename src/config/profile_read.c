/* See profile_read.h. */

#include "config/profile_read.h"

#include "base/buf.h"
#include "config/config.h"

#include <ctype.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static void list_clear(struct config_list *l) {
    for (unsigned k = 0; k < l->n; k++)
        free(l->items[k]);
    free(l->items);
    *l = (struct config_list){0};
}

void profile_list_add(struct config_list *l, const char *item) {
    l->items = xrealloc(l->items, (l->n + 1) * sizeof *l->items);
    l->items[l->n++] = xstrdup(item);
}

/* What may stand in a list. */
static bool is_absolute(const char *s) {
    return s[0] == '/';
}

static bool is_module(const char *s) {
    do {
        if (!isalpha((unsigned char)*s) && *s != '_')
            return false;
        while (isalnum((unsigned char)*s) || *s == '_')
            s++;
    } while (*s++ == '.');
    return s[-1] == '\0';
}

/* One key of a profile's definition; `where` names it in messages. */
struct key {
    const char *where;
    const json_t *value;
};

static int read_list(const struct key *k, bool (*good)(const char *), const char *what,
                     struct config_list *ret, struct err *e) {
    if (!json_is_array(k->value) || json_array_size(k->value) > CONFIG_MAX_LIST)
        return err_user(e, "bad_config", "%s must be a list of at most %d %s", k->where,
                        CONFIG_MAX_LIST, what);
    list_clear(ret);
    size_t i;
    json_t *item;
    json_array_foreach(k->value, i, item) {
        const char *s = json_string_value(item);
        if (!s || !good(s) || strlen(s) > CONFIG_MAX_STRING)
            return err_user(e, "bad_config", "%s: item %zu is none of: %s", k->where, i + 1, what);
        profile_list_add(ret, s);
    }
    return 0;
}

static int read_number(const struct key *k, uint32_t min, uint32_t max, uint32_t *ret,
                       struct err *e) {
    json_int_t v = json_is_integer(k->value) ? json_integer_value(k->value) : -1;
    if (v < (json_int_t)min || v > (json_int_t)max)
        return err_user(e, "bad_config", "%s must be a whole number from %u to %u", k->where, min,
                        max);
    *ret = (uint32_t)v;
    return 0;
}

static int read_python(const struct key *k, char **ret, struct err *e) {
    const char *s = json_string_value(k->value);
    if (!s || s[0] != '/' || strlen(s) > CONFIG_MAX_STRING)
        return err_user(e, "bad_config", "%s must be the absolute path of an interpreter",
                        k->where);
    free(*ret);
    *ret = xstrdup(s);
    return 0;
}

static bool is_variable(const char *s) {
    if (!isalpha((unsigned char)*s) && *s != '_')
        return false;
    while (isalnum((unsigned char)*s) || *s == '_')
        s++;
    return *s == '\0';
}

/* The zygote is told each in a line. */
static int read_env(const struct key *k, struct config_list *ret, struct err *e) {
    const char *name;
    json_t *value;
    if (!json_is_object(k->value) || json_object_size(k->value) > CONFIG_MAX_LIST)
        return err_user(e, "bad_config", "%s must be an object of at most %d variables", k->where,
                        CONFIG_MAX_LIST);
    list_clear(ret);
    json_object_foreach((json_t *)k->value, name, value) {
        AUTO_BUF pair = BUF_INIT;
        const char *text = json_string_value(value);
        if (!is_variable(name) || !text || strchr(text, '\n'))
            return err_user(e, "bad_config",
                            "%s: %.40s must be the name of a variable and a string of one line",
                            k->where, name);
        if (strcmp(name, "PYTHONPATH") == 0 || strcmp(name, "PYTHONHOME") == 0)
            return err_user(e, "bad_config", "%s: %s cannot be there; directories go to sites",
                            k->where, name);
        buf_addf(&pair, "%s=%s", name, text);
        if (pair.len > CONFIG_MAX_STRING)
            return err_user(e, "bad_config", "%s: %.40s is longer than %d bytes", k->where, name,
                            CONFIG_MAX_STRING);
        profile_list_add(ret, pair.data);
    }
    return 0;
}

static size_t find_limit(const char *name) {
    size_t i = 0;
    while (i < LIMITS_ && strcmp(limits_info[i].name, name) != 0)
        i++;
    return i;
}

/* As in a request: cores are a number that may have a fraction. */
static int read_limit(const struct key *k, size_t i, const json_t *value, struct limits *ret,
                      struct err *e) {
    const struct limit_info *l = &limits_info[i];
    bool is_cores = l->type == LIMIT_CORES;
    double v = json_is_number(value) && (is_cores || json_is_integer(value))
                   ? json_number_value(value) * (is_cores ? 1000 : 1)
                   : -1;
    if (!(v >= (double)l->min && v <= (double)l->max))
        return err_user(e, "bad_config", "%s: %s must be a %snumber from %.10g to %.10g", k->where,
                        l->name, is_cores ? "" : "whole ", (double)l->min / (is_cores ? 1000 : 1),
                        (double)l->max / (is_cores ? 1000 : 1));
    limits_set(ret, i, is_cores ? (uint64_t)(v / 10 + 0.5) : (uint64_t)v);
    return 0;
}

static int read_limits(const struct key *k, struct limits *ret, struct err *e) {
    const char *name;
    json_t *value;
    if (!json_is_object(k->value))
        return err_user(e, "bad_config", "%s must be an object of limits", k->where);
    *ret = (struct limits){0};
    json_object_foreach((json_t *)k->value, name, value) {
        size_t i = find_limit(name);
        if (i == LIMITS_)
            return err_user(e, "bad_config", "%s: there is no limit %.40s", k->where, name);
        if (read_limit(k, i, value, ret, e) < 0)
            return -1;
    }
    return 0;
}

static int read_key(const char *name, const struct key *k, struct config_profile *p,
                    struct err *e) {
    if (strcmp(name, "python") == 0)
        return read_python(k, &p->python, e);
    if (strcmp(name, "sites") == 0)
        return read_list(k, is_absolute, "absolute paths", &p->sites, e);
    if (strcmp(name, "read_only") == 0)
        return read_list(k, is_absolute, "absolute paths", &p->binds, e);
    if (strcmp(name, "preload") == 0)
        return read_list(k, is_module, "names of modules", &p->preload, e);
    if (strcmp(name, "pool") == 0)
        return read_number(k, 0, 1024, &p->pool, e);
    if (strcmp(name, "zygotes") == 0)
        return read_number(k, 0, 64, &p->zygotes, e);
    if (strcmp(name, "env") == 0)
        return read_env(k, &p->env, e);
    if (strcmp(name, "limits") == 0)
        return read_limits(k, &p->limits, e);
    return err_user(e, "bad_config",
                    "there is no key %s; a profile has python, sites, preload, read_only, env, "
                    "limits, pool and zygotes",
                    k->where);
}

int profile_read(const char *file, const json_t *definition, struct config_profile *p,
                 struct err *e) {
    if (!json_is_object(definition))
        return err_user(e, "bad_config", "%s: profiles.%s must be an object", file, p->name);
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)definition, name, value) {
        AUTO_BUF where = BUF_INIT;
        buf_addf(&where, "%.200s: profiles.%s.%.40s", file, p->name, name);
        struct key k = {where.data, value};
        if (read_key(name, &k, p, e) < 0)
            return -1;
    }
    return 0;
}
