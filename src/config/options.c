/* See options.h. */

#include "config/options.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/num.h"
#include "config/env_file.h"
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
    char *env_file;              /* owned */
    bool env_file_read;
    json_t *profiles;
};

struct env_variable {
    char *name, *value; /* owned */
};

/* What a file of variables says. */
struct env_variables {
    struct env_variable *items; /* owned */
    size_t n;
};

struct options *options_new(void) {
    struct options *o = xcalloc(1, sizeof *o);
    o->values = xcalloc(settings_count, sizeof *o->values);
    return o;
}

/* It may be a secret. */
static void wipe(char *text) {
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
}

void options_free(struct options *o) {
    if (!o)
        return;
    for (size_t i = 0; i < settings_count; i++) {
        wipe(o->values[i].text);
        free(o->values[i].from);
        free(o->values[i].note);
    }
    free(o->values);
    free(o->file_flag);
    free(o->file);
    free(o->env_file);
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

/* What stands last counts. */
static const char *find_variable(const struct env_variables *all, const char *name) {
    for (size_t i = all->n; i-- > 0;)
        if (strcmp(all->items[i].name, name) == 0)
            return all->items[i].value;
    return NULL;
}

/* From a file, or (NULL) the environment. Our own name wins over another service's. */
static void load_variables(struct options *o, enum origin origin,
                           const struct env_variables *from) {
    for (size_t i = 0; i < settings_count; i++) {
        AUTO_FREE char *own = variable_name(settings[i].name);
        const char *names[] = {settings[i].variable, own};
        for (size_t k = 0; k < 2; k++) {
            const char *text = !names[k] ? NULL
                               : from    ? find_variable(from, names[k])
                                         : getenv(names[k]);
            AUTO_BUF where = BUF_INIT;
            if (!text || !*text)
                continue;
            buf_adds(&where, names[k]);
            if (from)
                buf_addf(&where, " in %s", o->env_file);
            set(&o->values[i], origin, where.data, text);
        }
    }
}

static void add_variable(void *arg, const char *name, const char *value) {
    struct env_variables *v = arg;
    v->items = xrealloc(v->items, (v->n + 1) * sizeof *v->items);
    v->items[v->n++] = (struct env_variable){xstrdup(name), xstrdup(value)};
}

static int load_env_file(struct options *o, struct err *e) {
    struct env_variables all = {0};
    o->env_file = paths_env_file(o->file);
    int rc = 0;
    if (o->env_file)
        rc = env_file_read(o->env_file, add_variable, &all, &o->env_file_read, e);
    if (rc == 0)
        load_variables(o, ORIGIN_ENV_FILE, &all);
    for (size_t i = 0; i < all.n; i++) {
        free(all.items[i].name);
        wipe(all.items[i].value);
    }
    free(all.items);
    return rc;
}

static int load_file(struct options *o, struct err *e) {
    return o->file ? config_file_read(o->file, o, e) : 0;
}

static char *default_state_dir(void) {
    char *dir = paths_state_dir();
    return dir ? dir : xstrdup("/tmp/cloche"); /* no home: a directory that only its maker uses */
}

static char *default_profiles_dir(void) {
    char *dir = paths_profiles_dir();
    return dir ? dir : xstrdup("/tmp/cloche-profiles");
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
        else if (strcmp(settings[i].name, "profiles_dir") == 0)
            v->text = default_profiles_dir();
        else if (strcmp(settings[i].name, "memory_budget_mb") == 0)
            v->text = memory_default_budget();
        else if (paths_libexec(&v->text, e) < 0)
            return -1;
    }
    return 0;
}

int options_load(struct options *o, struct err *e) {
    const char *named = o->file_flag ? o->file_flag : getenv("CLOCHE_CONFIG");
    o->file = named && *named ? xstrdup(named) : paths_config_file();
    load_variables(o, ORIGIN_ENV, NULL);
    if (load_file(o, e) < 0 || load_env_file(o, e) < 0)
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

const char *options_env_file(const struct options *o, bool *ret_read) {
    *ret_read = o->env_file_read;
    return o->env_file;
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
