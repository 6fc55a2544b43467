/* `cloche config`: every setting, its value and where it came from; the profiles as they would
 * start. It takes the flags of `serve`, so that what they would do can be seen. */

#include "cli/config.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"
#include "cli/report.h"
#include "config/config.h"
#include "config/options.h"
#include "config/resolve.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const origin_words[] = {
    [ORIGIN_DEFAULT] = "default", [ORIGIN_FILE] = "file", [ORIGIN_ENV_FILE] = "env_file",
    [ORIGIN_ENV] = "environment", [ORIGIN_FLAG] = "flag",
};

/* The value in force, which may differ from the text (a limit that had to give way). */
static void write_value(struct jw *j, const struct options *o, const struct config *c, size_t i) {
    const struct setting *s = &settings[i];
    if (s->offset == SETTING_NOWHERE) {
        jw_str(j, options_text(o, s->name));
        return;
    }
    const void *p = (const char *)c + s->offset;
    switch (s->type) {
    case SETTING_PATH:
    case SETTING_TEXT:
    case SETTING_CHOICE:
    case SETTING_SOME:
    case SETTING_ENV:
    case SETTING_RULES:
    case SETTING_SETS:
    case SETTING_MODULES:
        jw_str(j, *(char *const *)p);
        break;
    case SETTING_SECRET:
        jw_str(j, **(char *const *)p ? "(set)" : "");
        break;
    case SETTING_U32:
        jw_uint(j, *(const uint32_t *)p);
        break;
    case SETTING_U64:
        jw_uint(j, *(const uint64_t *)p);
        break;
    case SETTING_CORES:
        jw_real(j, *(const uint32_t *)p / 100.0);
        break;
    case SETTING_LEVEL:
    case SETTING_NAMES:
    case SETTING_AUTO:
        jw_str(j, options_text(o, s->name));
        break;
    }
}

static void write_list(struct jw *j, const char *key, const struct config_list *l) {
    jw_key(j, key);
    jw_array(j);
    for (unsigned k = 0; k < l->n; k++)
        jw_str(j, l->items[k]);
    jw_array_end(j);
}

static void write_limits(struct jw *j, const struct limits *l) {
    jw_key(j, "limits");
    jw_object(j);
    for (size_t i = 0; i < LIMITS_; i++) {
        uint64_t v = limits_value(l, i);
        if (v && limits_info[i].type == LIMIT_CORES)
            jw_key_real(j, limits_info[i].name, (double)v / 100);
        else if (v)
            jw_key_uint(j, limits_info[i].name, v);
    }
    jw_object_end(j);
}

static void print_limits(const struct limits *l) {
    for (size_t i = 0; i < LIMITS_; i++) {
        AUTO_BUF text = BUF_INIT;
        if (!limits_value(l, i))
            continue;
        limits_add_text(&text, i, limits_value(l, i));
        printf("  %-10s %s %s\n", "limit", limits_info[i].name, text.data);
    }
}

static void write_profile(struct jw *j, const struct config_profile *p) {
    jw_key(j, p->name);
    jw_object(j);
    jw_key_str(j, "python", p->python);
    write_list(j, "sites", &p->sites);
    write_list(j, "preload", &p->preload);
    write_list(j, "read_only", &p->binds);
    write_list(j, "env", &p->env);
    write_limits(j, &p->limits);
    jw_key_uint(j, "pool", p->pool);
    jw_key_uint(j, "zygotes", p->zygotes);
    jw_object_end(j);
}

static void print_json(const struct options *o, const struct config *c) {
    AUTO_BUF b = BUF_INIT;
    struct jw j = JW_INIT(&b);
    jw_object(&j);
    bool is_read;
    const char *env_file = options_env_file(o, &is_read);
    jw_key_str(&j, "file", options_file(o));
    jw_key_str(&j, "env_file", is_read ? env_file : NULL);
    jw_key(&j, "settings");
    jw_object(&j);
    for (size_t i = 0; i < settings_count; i++) {
        const struct option_value *v = options_at(o, i);
        jw_key(&j, settings[i].name);
        jw_object(&j);
        jw_key(&j, "value");
        write_value(&j, o, c, i);
        jw_key_str(&j, "origin", origin_words[v->origin]);
        jw_key_str(&j, "from", v->origin == ORIGIN_DEFAULT ? NULL : v->from);
        jw_key_str(&j, "note", v->note);
        jw_object_end(&j);
    }
    jw_object_end(&j);
    jw_key(&j, "profiles");
    jw_object(&j);
    for (unsigned i = 0; i < c->nprofiles && !c->profiles[i].live; i++)
        write_profile(&j, &c->profiles[i]);
    jw_object_end(&j);
    jw_object_end(&j);
    puts(b.data);
}

static void print_list(const char *what, const struct config_list *l) {
    if (!l->n)
        return;
    printf("  %-10s", what);
    size_t column = 12;
    for (unsigned k = 0; k < l->n; k++) {
        size_t len = strlen(l->items[k]) + 1;
        if (column + len > 96) {
            printf("\n  %-10s", "");
            column = 12;
        }
        printf(" %s", l->items[k]);
        column += len;
    }
    putchar('\n');
}

static void print_text(const struct options *o, const struct config *c) {
    const char *file = options_file(o);
    bool is_read;
    const char *env_file = options_env_file(o, &is_read);
    printf("configuration file: %s\n", file ? file : "none");
    if (env_file)
        printf("variables:          %s%s\n", env_file, is_read ? "" : " (not readable, left out)");
    putchar('\n');
    for (size_t i = 0; i < settings_count; i++) {
        AUTO_BUF value = BUF_INIT;
        struct jw j = JW_INIT(&value);
        write_value(&j, o, c, i);
        const struct option_value *v = options_at(o, i);
        printf("%-22s %-28s %s", settings[i].name, value.data, v->from);
        if (v->origin == ORIGIN_ENV)
            printf(" (environment)");
        if (v->note)
            printf(", %s", v->note);
        putchar('\n');
    }
    for (unsigned i = 0; i < c->nprofiles && !c->profiles[i].live; i++) {
        const struct config_profile *p = &c->profiles[i];
        printf("\nprofile %s\n  python     %s\n  pool       %u\n", p->name, p->python, p->pool);
        if (p->zygotes)
            printf("  zygotes    %u\n", p->zygotes);
        print_list("sites", &p->sites);
        print_list("read_only", &p->binds);
        print_list("env", &p->env);
        print_limits(&p->limits);
        print_list("preload", &p->preload);
    }
}

int verb_config(int argc, char **argv) {
    bool json = false, help = false;
    const struct verb_flag flags[] = {{"json", &json}, {"help", &help}, {0}};
    AUTO_OPTIONS o = options_new();
    struct err e;
    if (options_parse(o, argc, argv, flags, &e) < 0)
        return report(&e, json);
    if (help) {
        puts("cloche config [--json] [SETTINGS]\n\n"
             "Prints every setting, its value and where it came from. The settings:\n");
        options_help();
        return 0;
    }
    struct config c;
    if (options_load(o, &e) < 0 || options_resolve(o, &c, &e) < 0)
        return report(&e, json);
    if (json)
        print_json(o, &c);
    else
        print_text(o, &c);
    config_done(&c);
    return 0;
}
