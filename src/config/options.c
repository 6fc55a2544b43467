/* See options.h. */

#include "config/options.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/num.h"
#include "config/file.h"
#include "config/memory.h"
#include "config/paths.h"

#include <ctype.h>
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options {
    struct option_value *values; /* owned: one for each setting */
    char *file_flag;             /* owned: --config */
    char *file;                  /* owned */
    json_t *profiles;
};

struct options *options_new(void) {
    struct options *o = xcalloc(1, sizeof *o);
    o->values = xcalloc(settings_count, sizeof *o->values);
    return o;
}

void options_free(struct options *o) {
    if (!o)
        return;
    for (size_t i = 0; i < settings_count; i++) {
        free(o->values[i].text);
        free(o->values[i].from);
        free(o->values[i].note);
    }
    free(o->values);
    free(o->file_flag);
    free(o->file);
    json_decref(o->profiles);
    free(o);
}

/* The name as a flag ("--memory-mb") or as a variable ("CLOCHE_MEMORY_MB"). */
static char *flag_name(const char *name) {
    struct buf b = BUF_INIT;
    buf_adds(&b, "--");
    for (; *name; name++)
        buf_addc(&b, *name == '_' ? '-' : *name);
    return buf_take(&b);
}

static char *variable_name(const char *name) {
    struct buf b = BUF_INIT;
    buf_adds(&b, "CLOCHE_");
    for (; *name; name++)
        buf_addc(&b, (char)toupper((unsigned char)*name));
    return buf_take(&b);
}

static void set(struct option_value *v, enum origin origin, const char *from, const char *text) {
    if (v->text && v->origin > origin)
        return;
    free(v->text);
    free(v->from);
    v->text = xstrdup(text);
    v->from = xstrdup(from);
    v->origin = origin;
}

int options_set_flag(struct options *o, const char *name, const char *text, struct err *e) {
    if (strcmp(name, "config") == 0) {
        free(o->file_flag);
        o->file_flag = xstrdup(text);
        return 0;
    }
    size_t i = setting_find(name);
    if (i == settings_count)
        return err_user(e, "bad_option", "there is no setting %s", name);
    AUTO_FREE char *flag = flag_name(name);
    set(&o->values[i], ORIGIN_FLAG, flag, text);
    return 0;
}

bool options_set_file(struct options *o, const char *name, const char *text) {
    size_t i = setting_find(name);
    if (i < settings_count)
        set(&o->values[i], ORIGIN_FILE, o->file, text);
    return i < settings_count;
}

void options_set_profiles(struct options *o, json_t *profiles) {
    json_decref(o->profiles);
    o->profiles = profiles;
}

static void load_environment(struct options *o) {
    for (size_t i = 0; i < settings_count; i++) {
        AUTO_FREE char *own = variable_name(settings[i].name);
        const char *names[] = {settings[i].variable, own}; /* ours last: it wins */
        for (size_t k = 0; k < 2; k++) {
            const char *text = names[k] ? getenv(names[k]) : NULL;
            if (text && *text)
                set(&o->values[i], ORIGIN_ENV, names[k], text);
        }
    }
}

static int load_file(struct options *o, struct err *e) {
    const char *named = o->file_flag ? o->file_flag : getenv("CLOCHE_CONFIG");
    if (named && *named)
        o->file = xstrdup(named);
    else
        o->file = paths_config_file();
    return o->file ? config_file_read(o->file, o, e) : 0;
}

static char *default_state_dir(void) {
    char *dir = paths_state_dir();
    return dir ? dir : xstrdup("/tmp/cloche"); /* no home: a directory that only its maker uses */
}

static int load_defaults(struct options *o, struct err *e) {
    for (size_t i = 0; i < settings_count; i++) {
        struct option_value *v = &o->values[i];
        if (v->text)
            continue;
        v->origin = ORIGIN_DEFAULT;
        v->from = xstrdup("default");
        if (settings[i].fallback)
            v->text = xstrdup(settings[i].fallback);
        else if (strncmp(settings[i].name, "live_", 5) == 0) /* as one-shot programs have it */
            v->text = xstrdup(options_text(o, settings[i].name + 5));
        else if (strcmp(settings[i].name, "socket") == 0)
            v->text = paths_socket();
        else if (strcmp(settings[i].name, "state_dir") == 0)
            v->text = default_state_dir();
        else if (strcmp(settings[i].name, "memory_budget_mb") == 0)
            v->text = memory_default_budget();
        else if (paths_libexec(&v->text, e) < 0)
            return -1;
    }
    return 0;
}

int options_load(struct options *o, struct err *e) {
    load_environment(o);
    if (load_file(o, e) < 0)
        return -1;
    return load_defaults(o, e);
}

const char *options_text(const struct options *o, const char *name) {
    return o->values[setting_find(name)].text;
}

enum origin options_origin(const struct options *o, const char *name) {
    return o->values[setting_find(name)].origin;
}

const struct option_value *options_at(const struct options *o, size_t setting) {
    return &o->values[setting];
}

void options_note(struct options *o, size_t setting, const char *what, const char *other) {
    struct buf b = BUF_INIT;
    buf_addf(&b, "%s to %s", what, other);
    free(o->values[setting].note);
    o->values[setting].note = buf_take(&b);
}

const char *options_file(const struct options *o) {
    return o->file;
}

json_t *options_profiles(const struct options *o) {
    return o->profiles;
}

/* The command line. */

#define FLAG_BASE 1000 /* getopt codes: setting i is FLAG_BASE + i */

static void fill_long_options(struct option *to, const struct verb_flag *extra, size_t nextra,
                              char **names) {
    for (size_t i = 0; i < settings_count; i++) {
        names[i] = flag_name(settings[i].name);
        *to++ = (struct option){names[i] + 2, required_argument, NULL, (int)(FLAG_BASE + i)};
    }
    *to++ = (struct option){"config", required_argument, NULL, (int)(FLAG_BASE + settings_count)};
    for (size_t i = 0; i < nextra; i++)
        *to++ = (struct option){extra[i].name, no_argument, NULL,
                                (int)(FLAG_BASE + settings_count + 1 + i)};
    *to = (struct option){0};
}

int options_parse(struct options *o, int argc, char **argv, const struct verb_flag *extra,
                  struct err *e) {
    size_t nextra = 0;
    while (extra[nextra].name)
        nextra++;
    AUTO_FREE char **names = xcalloc(settings_count, sizeof *names);
    AUTO_FREE struct option *longs = xcalloc(settings_count + nextra + 2, sizeof *longs);
    fill_long_options(longs, extra, nextra, names);
    optind = 0; /* a fresh scan, also with GNU's own state */
    opterr = 0;
    int code, rc = 0;
    while (rc == 0 && (code = getopt_long(argc, argv, "+:", longs, NULL)) != -1) {
        size_t i = (size_t)(code - FLAG_BASE);
        if (code < FLAG_BASE)
            rc = flags_bad(argv[0], code, argv, longs, e);
        else if (i > settings_count)
            *extra[i - settings_count - 1].ret = true;
        else
            rc = options_set_flag(o, i == settings_count ? "config" : settings[i].name, optarg, e);
    }
    if (rc == 0 && optind < argc) {
        char quoted[80];
        rc = err_user(e, "bad_option", "%s: takes no argument %s", argv[0],
                      log_quote(argv[optind], quoted, sizeof quoted));
    }
    for (size_t i = 0; i < settings_count; i++)
        free(names[i]);
    return rc;
}

void options_help(void) {
    for (size_t i = 0; i < settings_count; i++) {
        AUTO_FREE char *flag = flag_name(settings[i].name);
        printf("  %-24s %s", flag, settings[i].help);
        if (settings[i].fallback && settings[i].fallback[0])
            printf("%s(%s)", settings[i].help[0] ? " " : "", settings[i].fallback);
        putchar('\n');
    }
    puts("  --config                 the configuration file (JSON)");
}
