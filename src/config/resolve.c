/* See resolve.h. One function reads a value of each type; then the limits are fitted to each other,
 * and the profiles read (profiles.c). */

#include "config/resolve.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/num.h"
#include "config/config.h"
#include "config/options.h"
#include "config/packages.h"
#include "config/paths.h"
#include "config/profiles.h"
#include "config/rules.h"
#include "wire/run.h"

#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "MEMORY_LIMIT_MB", "--memory-mb", "memory_mb in FILE". */
static const char *field_name(const struct options *o, size_t i, char *out, size_t cap) {
    const struct option_value *v = options_at(o, i);
    if (v->origin == ORIGIN_FILE)
        snprintf(out, cap, "%s in %s", settings[i].name, v->from);
    else
        snprintf(out, cap, "%s", v->origin == ORIGIN_DEFAULT ? settings[i].name : v->from);
    return out;
}

static int read_choice(const char *words, const char *field, const char *text, struct err *e) {
    size_t len = strlen(text);
    for (const char *p = words; *p; p += strspn(p, " ")) {
        size_t n = strcspn(p, " ");
        if (n == len && strncmp(p, text, n) == 0)
            return 0;
        p += n;
    }
    char quoted[64];
    return err_user(e, "bad_value", "%s is %s; it must be one of: %s", field,
                    log_quote(text, quoted, sizeof quoted), words);
}

/* Every name of a list with commas: one of `words`, or that of a module where there are none. */
static int read_list(const struct setting *s, const char *field, const char *text, struct err *e) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    for (const char *p = text; *p;) {
        size_t n = strcspn(p, ",");
        AUTO_FREE char *name = xstrndup(p, n);
        p += n + (p[n] == ',');
        if (s->words && read_choice(s->words, field, name, e) < 0)
            return -1;
        if (!s->words && (n == 0 || strspn(name, letters) != n)) {
            char quoted[64];
            return err_user(e, "bad_value",
                            "%s has %s; it takes names of modules (no dots), with commas", field,
                            log_quote(name, quoted, sizeof quoted));
        }
    }
    return 0;
}

static int read_env(const char *field, const char *text, struct err *e) {
    json_auto_t *env = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    const char *name;
    json_t *value;
    if (!json_is_object(env) || json_object_size(env) > RUN_MAX_ENV / 2) {
        char quoted[64];
        return err_user(e, "bad_value",
                        "%s is %s; it must be a JSON object of at most %d variables: "
                        "{\"NAME\": \"VALUE\"}",
                        field, log_quote(text, quoted, sizeof quoted), RUN_MAX_ENV / 2);
    }
    json_object_foreach(env, name, value) {
        char quoted[64];
        log_quote(name, quoted, sizeof quoted);
        if (!*name || strchr(name, '='))
            return err_user(e, "bad_value", "%s has the name %s; it is empty or holds a '='", field,
                            quoted);
        if (!json_is_string(value))
            return err_user(e, "bad_value", "%s: the value of %s must be a string", field, quoted);
    }
    return 0;
}

/* Other services' users write INFO and WARNING. */
static int read_level(const char *field, const char *text, uint32_t *ret, struct err *e) {
    char word[16] = "";
    for (size_t i = 0; i < sizeof word - 1 && text[i]; i++)
        word[i] = (char)tolower((unsigned char)text[i]);
    if (strcmp(word, "warning") == 0)
        snprintf(word, sizeof word, "warn");
    if (strcmp(word, "critical") == 0 || strcmp(word, "fatal") == 0)
        snprintf(word, sizeof word, "error");
    enum log_level level;
    if (strlen(text) >= sizeof word || log_level_parse(word, &level, e) < 0)
        return read_choice("error warn info debug", field, text, e);
    *ret = level;
    return 0;
}

static int read_string(const struct setting *s, const char *field, const char *text, char **ret,
                       struct err *e) {
    bool is_rules = s->type == SETTING_RULES || s->type == SETTING_SETS;
    size_t most = is_rules ? CONFIG_MAX_RULES : CONFIG_MAX_STRING / 2;
    if (strlen(text) > most)
        return err_user(e, "bad_value", "%s is longer than %zu bytes", field, most);
    if (s->type == SETTING_CHOICE && read_choice(s->words, field, text, e) < 0)
        return -1;
    if ((s->type == SETTING_SOME || s->type == SETTING_MODULES) && read_list(s, field, text, e) < 0)
        return -1;
    if (s->type == SETTING_ENV && read_env(field, text, e) < 0)
        return -1;
    if (s->type == SETTING_PATH)
        return paths_absolute(text, ret, e);
    *ret = xstrdup(text);
    return 0;
}

static int read_value(const struct options *o, size_t i, struct config *c, struct err *e) {
    const struct setting *s = &settings[i];
    const char *text = options_at(o, i)->text;
    char field[300];
    field_name(o, i, field, sizeof field);
    struct num_rule rule = {field, s->min, s->max};
    uint32_t scratch;
    if (s->type == SETTING_CHOICE && s->offset == SETTING_NOWHERE)
        return read_choice(s->words, field, text, e);
    void *to = s->offset == SETTING_NOWHERE ? &scratch : (void *)((char *)c + s->offset);
    switch (s->type) {
    case SETTING_PATH:
    case SETTING_TEXT:
    case SETTING_SECRET:
    case SETTING_CHOICE:
    case SETTING_SOME:
    case SETTING_MODULES:
    case SETTING_ENV:
    case SETTING_RULES:
    case SETTING_SETS:
        return read_string(s, field, text, to, e);
    case SETTING_LEVEL:
        return read_level(field, text, to, e);
    case SETTING_NAMES:
        return 0; /* profiles.c reads them, it knows which there are */
    case SETTING_AUTO:
        if (strcmp(text, "auto") == 0)
            return 0;
        return num_u32(text, &rule, to, e);
    case SETTING_U32:
        return num_u32(text, &rule, to, e);
    case SETTING_U64:
        return num_u64(text, &rule, to, e);
    case SETTING_CORES: {
        uint64_t milli;
        if (num_milli(text, &rule, &milli, e) < 0)
            return -1;
        *(uint32_t *)to = (uint32_t)(milli / 10);
        return 0;
    }
    }
    return 0;
}

static uint64_t get_limit(const struct config *c, size_t i) {
    const void *p = (const char *)c + settings[i].offset;
    return settings[i].type == SETTING_U64 ? *(const uint64_t *)p : *(const uint32_t *)p;
}

static void set_limit(struct config *c, size_t i, uint64_t v) {
    void *p = (char *)c + settings[i].offset;
    if (settings[i].type == SETTING_U64)
        *(uint64_t *)p = v;
    else
        *(uint32_t *)p = (uint32_t)v;
}

/* A default above its maximum: whichever nobody chose gives way. Both chosen is a contradiction. */
static int fit(struct options *o, struct config *c, const char *usual, const char *most,
               struct err *e) {
    size_t d = setting_find(usual), m = setting_find(most);
    if (get_limit(c, d) <= get_limit(c, m))
        return 0;
    if (options_origin(o, most) == ORIGIN_DEFAULT) {
        set_limit(c, m, get_limit(c, d));
        options_note(o, m, "raised", usual);
    } else if (options_origin(o, usual) == ORIGIN_DEFAULT) {
        set_limit(c, d, get_limit(c, m));
        options_note(o, d, "lowered", most);
    } else {
        char field_d[300], field_m[300];
        return err_user(e, "bad_value", "%s is %s, above %s, which is %s",
                        field_name(o, d, field_d, sizeof field_d), options_text(o, usual),
                        field_name(o, m, field_m, sizeof field_m), options_text(o, most));
    }
    return 0;
}

static int fit_limits(struct options *o, struct config *c, struct err *e) {
    for (size_t i = 0; i < LIMITS_; i++) {
        const char *name = limits_info[i].name;
        char most[40], live[40];
        snprintf(most, sizeof most, "max_%s", name);
        snprintf(live, sizeof live, "live_%s", name);
        if (fit(o, c, name, most, e) < 0 || fit(o, c, live, most, e) < 0)
            return -1;
    }
    return fit(o, c, "live_ttl_seconds", "live_ttl_max_seconds", e);
}

int options_resolve(struct options *o, struct config *ret, struct err *e) {
    *ret = (struct config){0};
    struct config c = {0};
    int rc = 0;
    for (size_t i = 0; i < settings_count && rc == 0; i++)
        rc = read_value(o, i, &c, e);
    if (rc == 0)
        rc = fit_limits(o, &c, e);
    if (rc == 0)
        rc = rules_check(&c, e);
    if (rc == 0)
        rc = packages_check(&c, e);
    if (rc == 0)
        rc = profiles_resolve(o, &c, e);
    if (rc == 0) {
        struct buf b = BUF_INIT;
        buf_addf(&b, "%s/py", c.libexec);
        c.pylib = buf_take(&b);
        *ret = c;
    } else {
        config_done(&c);
    }
    return rc;
}
