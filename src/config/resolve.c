/* See options.h. */

#include "config/resolve.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/num.h"
#include "config/config.h"
#include "config/file.h"
#include "config/memory.h"
#include "config/paths.h"
#include "config/profiles.h"
#include "wire/run.h"

#include <ctype.h>
#include <getopt.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct value {
    char *text; /* owned; NULL until set */
    enum origin origin;
    char *from; /* owned: the flag, the variable, the file */
    char *note; /* owned, or NULL */
};

struct options {
    struct value values[SETTINGS_];
    char *file_flag; /* owned: --config */
    char *file;      /* owned */
    json_t *profiles;
};

struct options *options_new(void) {
    return xcalloc(1, sizeof(struct options));
}

void options_free(struct options *o) {
    if (!o)
        return;
    for (size_t i = 0; i < SETTINGS_; i++) {
        free(o->values[i].text);
        free(o->values[i].from);
        free(o->values[i].note);
    }
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

static void set(struct value *v, enum origin origin, const char *from, const char *text) {
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
    if (i == SETTINGS_)
        return err_user(e, "bad_option", "there is no setting %s", name);
    AUTO_FREE char *flag = flag_name(name);
    set(&o->values[i], ORIGIN_FLAG, flag, text);
    return 0;
}

bool options_set_file(struct options *o, const char *name, const char *text) {
    size_t i = setting_find(name);
    if (i < SETTINGS_)
        set(&o->values[i], ORIGIN_FILE, o->file, text);
    return i < SETTINGS_;
}

void options_set_profiles(struct options *o, json_t *profiles) {
    json_decref(o->profiles);
    o->profiles = profiles;
}

static void load_environment(struct options *o) {
    for (size_t i = 0; i < SETTINGS_; i++) {
        AUTO_FREE char *own = variable_name(settings[i].name);
        const char *names[] = {settings[i].dialect, own}; /* ours last: it wins */
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
    for (size_t i = 0; i < SETTINGS_; i++) {
        struct value *v = &o->values[i];
        if (v->text)
            continue;
        v->origin = ORIGIN_DEFAULT;
        v->from = xstrdup("default");
        if (settings[i].fallback)
            v->text = xstrdup(settings[i].fallback);
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

const char *options_from(const struct options *o, size_t setting) {
    return o->values[setting].from;
}

const char *options_note(const struct options *o, size_t setting) {
    return o->values[setting].note;
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
    for (size_t i = 0; i < SETTINGS_; i++) {
        names[i] = flag_name(settings[i].name);
        *to++ = (struct option){names[i] + 2, required_argument, NULL, (int)(FLAG_BASE + i)};
    }
    *to++ = (struct option){"config", required_argument, NULL, (int)(FLAG_BASE + SETTINGS_)};
    for (size_t i = 0; i < nextra; i++)
        *to++ =
            (struct option){extra[i].name, no_argument, NULL, (int)(FLAG_BASE + SETTINGS_ + 1 + i)};
    *to = (struct option){0};
}

int options_parse(struct options *o, int argc, char **argv, const struct verb_flag *extra,
                  struct err *e) {
    size_t nextra = 0;
    while (extra[nextra].name)
        nextra++;
    char *names[SETTINGS_] = {0};
    AUTO_FREE struct option *longs = xcalloc(SETTINGS_ + nextra + 2, sizeof *longs);
    fill_long_options(longs, extra, nextra, names);
    optind = 0; /* a fresh scan, also with GNU's own state */
    opterr = 0;
    int code, rc = 0;
    while (rc == 0 && (code = getopt_long(argc, argv, "+:", longs, NULL)) != -1) {
        size_t i = (size_t)(code - FLAG_BASE);
        if (code < FLAG_BASE)
            rc = flags_bad(argv[0], code, argv, longs, e);
        else if (i > SETTINGS_)
            *extra[i - SETTINGS_ - 1].ret = true;
        else
            rc = options_set_flag(o, i == SETTINGS_ ? "config" : settings[i].name, optarg, e);
    }
    if (rc == 0 && optind < argc) {
        char quoted[80];
        rc = err_user(e, "bad_option", "%s: takes no argument %s", argv[0],
                      log_quote(argv[optind], quoted, sizeof quoted));
    }
    for (size_t i = 0; i < SETTINGS_; i++)
        free(names[i]);
    return rc;
}

void options_help(void) {
    for (size_t i = 0; i < SETTINGS_; i++) {
        AUTO_FREE char *flag = flag_name(settings[i].name);
        printf("  %-24s %s", flag, settings[i].help);
        if (settings[i].fallback && settings[i].fallback[0])
            printf("%s(%s)", settings[i].help[0] ? " " : "", settings[i].fallback);
        putchar('\n');
    }
    puts("  --config                 the configuration file (JSON)");
}

/* Reading the values. */

/* "MEMORY_LIMIT_MB", "--memory-mb", "memory_mb in FILE". */
static const char *field_name(const struct options *o, size_t i, char *out, size_t cap) {
    const struct value *v = &o->values[i];
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
    if (strlen(text) > CONFIG_MAX_STRING / 2)
        return err_user(e, "bad_value", "%s is longer than %d bytes", field, CONFIG_MAX_STRING / 2);
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
    const char *text = o->values[i].text;
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

static void set_note(struct value *v, const char *what, const char *other) {
    struct buf b = BUF_INIT;
    buf_addf(&b, "%s to %s", what, other);
    free(v->note);
    v->note = buf_take(&b);
}

/* A default above its maximum: whichever nobody chose gives way. Both chosen is a contradiction. */
static int fit(struct options *o, struct config *c, size_t d, size_t m, struct err *e) {
    if (d == SETTINGS_ || get_limit(c, d) <= get_limit(c, m))
        return 0;
    if (o->values[m].origin == ORIGIN_DEFAULT) {
        set_limit(c, m, get_limit(c, d));
        set_note(&o->values[m], "raised", settings[d].name);
    } else if (o->values[d].origin == ORIGIN_DEFAULT) {
        set_limit(c, d, get_limit(c, m));
        set_note(&o->values[d], "lowered", settings[m].name);
    } else {
        char field_d[300], field_m[300];
        return err_user(e, "bad_value", "%s is %s, above %s, which is %s",
                        field_name(o, d, field_d, sizeof field_d), o->values[d].text,
                        field_name(o, m, field_m, sizeof field_m), o->values[m].text);
    }
    return 0;
}

static int fit_limits(struct options *o, struct config *c, struct err *e) {
    for (size_t m = 0; m < SETTINGS_; m++) {
        if (strncmp(settings[m].name, "max_", 4) != 0)
            continue;
        char live[40];
        snprintf(live, sizeof live, "live_%s", settings[m].name + 4);
        if (fit(o, c, setting_find(settings[m].name + 4), m, e) < 0 ||
            fit(o, c, setting_find(live), m, e) < 0)
            return -1;
    }
    return fit(o, c, setting_find("live_ttl_seconds"), setting_find("live_ttl_max_seconds"), e);
}

/* What live sandboxes have no settings of their own for. */
static void fill_live(struct config *c) {
    c->live.cpus_percent = c->defaults.cpus_percent;
    c->live.pids = c->defaults.pids;
    c->live.open_files = c->defaults.open_files;
}

int options_resolve(struct options *o, struct config *ret, struct err *e) {
    *ret = (struct config){0};
    struct config c = {0};
    int rc = 0;
    for (size_t i = 0; i < SETTINGS_ && rc == 0; i++)
        rc = read_value(o, i, &c, e);
    if (rc == 0)
        rc = fit_limits(o, &c, e);
    if (rc == 0)
        rc = profiles_resolve(o, &c, e);
    fill_live(&c);
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
