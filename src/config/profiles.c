/* See profiles.h. */

#include "config/profiles.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/num.h"
#include "config/config.h"
#include "config/made.h"
#include "config/options.h"
#include "config/profile_read.h"
#include "wire/mounts.h"

#include <ctype.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define DEFAULT_PYTHON "/usr/bin/python3"

/* What small programs import first. Each costs every start of the engine and every fork a little:
 * these together take about as long as starting Python. asyncio alone would take twice that, and
 * urllib.request, unittest and multiprocessing as much as all of these. */
#define BASE_MODULES                                                                               \
    "re", "json", "math", "random", "datetime", "time", "collections", "itertools", "functools",   \
        "operator", "string", "textwrap", "copy", "bisect", "heapq", "typing", "csv"

static const char *const base_modules[] = {BASE_MODULES, NULL};

/* scipy and sklearn import their parts only when asked: these are the parts that people ask for,
 * the rest of those packages comes along with them. */
static const char *const data_modules[] = {
    BASE_MODULES,
    "decimal",
    "fractions",
    "statistics",
    "pathlib",
    "dataclasses",
    "numpy",
    "pandas",
    "matplotlib",
    "matplotlib.pyplot",
    "scipy",
    "scipy.stats",
    "scipy.optimize",
    "scipy.integrate",
    "scipy.interpolate",
    "scipy.linalg",
    "scipy.signal",
    "sklearn",
    "sklearn.linear_model",
    "sklearn.model_selection",
    "sklearn.preprocessing",
    "sklearn.metrics",
    "sklearn.datasets",
    "sklearn.ensemble",
    "sklearn.cluster",
    "sklearn.decomposition",
    "sklearn.pipeline",
    "sklearn.svm",
    "sympy",
    "PIL",
    "PIL.Image",
    NULL,
};

static const struct builtin {
    const char *name;
    const char *const *modules;
    uint32_t pool;
} builtins[] = {
    {"base", base_modules, 4},
    {"data", data_modules, 2},
};
#define BUILTINS    (sizeof builtins / sizeof builtins[0])
#define OTHERS_POOL 2

static const struct builtin *find_builtin(const char *name) {
    for (size_t i = 0; i < BUILTINS; i++)
        if (strcmp(builtins[i].name, name) == 0)
            return &builtins[i];
    return NULL;
}

/* Where definitions come from: the configuration file first, then what `cloche profile` made. */
struct source {
    const struct options *o; /* borrowed */
    json_t *made;            /* owned */
};

static const json_t *find_definition(const struct source *s, const char *name,
                                     const char **ret_where) {
    const json_t *all = options_profiles(s->o);
    const json_t *definition = all ? json_object_get(all, name) : NULL;
    *ret_where = definition ? options_file(s->o) : options_text(s->o, "profiles_dir");
    return definition ? definition : json_object_get(s->made, name);
}

/* The number of a setting that may be "auto"; options_resolve has checked it. */
static bool explicit_number(const struct options *o, const char *name, uint32_t *ret) {
    struct num_rule any = {name, 0, UINT32_MAX};
    struct err ignored;
    return num_u32(options_text(o, name), &any, ret, &ignored) == 0;
}

/* Weakest first: built in, the file's setting for all, the file's own for this profile, environment
 * and flag. */
static int fill(const struct source *s, struct config_profile *p, struct err *e) {
    const struct options *o = s->o;
    const struct builtin *b = find_builtin(p->name);
    p->python = xstrdup(DEFAULT_PYTHON);
    for (const char *const *m = b ? b->modules : NULL; m && *m; m++)
        profile_list_add(&p->preload, *m);
    p->pool = b ? b->pool : OTHERS_POOL;
    uint32_t pool, zygotes;
    bool all_pool = explicit_number(o, "pool", &pool);
    bool all_zygotes = explicit_number(o, "zygotes", &zygotes);
    if (all_pool)
        p->pool = pool;
    if (all_zygotes)
        p->zygotes = zygotes;
    const char *where;
    const json_t *definition = find_definition(s, p->name, &where);
    if (json_is_object(definition) && profile_read(where, definition, p, e) < 0)
        return -1;
    if (all_pool && options_origin(o, "pool") > ORIGIN_FILE)
        p->pool = pool;
    if (all_zygotes && options_origin(o, "zygotes") > ORIGIN_FILE)
        p->zygotes = zygotes;
    return 0;
}

static int add(const struct source *s, const char *name, struct config *c, struct err *e) {
    for (unsigned i = 0; i < c->nprofiles; i++)
        if (strcmp(c->profiles[i].name, name) == 0)
            return 0;
    if (c->nprofiles == CONFIG_MAX_NAMED)
        return err_user(e, "bad_config", "there are more than %d profiles", CONFIG_MAX_NAMED);
    struct config_profile *p = &c->profiles[c->nprofiles++];
    p->name = xstrdup(name);
    return fill(s, p, e);
}

/* The names of the setting `profiles`. */
static int add_named(const struct source *s, struct config *c, struct err *e) {
    const struct options *o = s->o;
    AUTO_FREE char *names = xstrdup(options_text(o, "profiles"));
    char *rest = names, *name;
    while ((name = strsep(&rest, ", "))) {
        if (!*name)
            continue;
        const char *where;
        const json_t *definition = find_definition(s, name, &where);
        bool chosen = options_origin(o, "profiles") != ORIGIN_DEFAULT;
        if (json_is_null(definition) && !chosen)
            continue; /* switched off in the file */
        if (!find_builtin(name) && !json_is_object(definition)) {
            char quoted[64];
            return err_user(e, "unknown_profile", "there is no profile %s",
                            log_quote(name, quoted, sizeof quoted));
        }
        if (add(s, name, c, e) < 0)
            return -1;
    }
    return 0;
}

/* All definitions are checked, started or not: a mistake should not wait for its day. */
static int check_definitions(const struct options *o, struct err *e) {
    const char *name;
    json_t *definition;
    json_object_foreach(options_profiles(o), name, definition) {
        char quoted[64];
        if (!config_name_is_good(name) || strcmp(name, "auto") == 0)
            return err_user(e, "bad_config",
                            "%s: a profile cannot be named %s (it has 1 to 32 of a-z 0-9 _ - and "
                            "is not auto)",
                            options_file(o), log_quote(name, quoted, sizeof quoted));
        if (json_is_null(definition) && find_builtin(name))
            continue;
        struct config scratch = {.nprofiles = 1};
        scratch.profiles[0].name = xstrdup(name);
        int rc = profile_read(options_file(o), definition, &scratch.profiles[0], e);
        config_done(&scratch);
        if (rc < 0)
            return -1;
    }
    return 0;
}

static void list_copy(struct config_list *to, const struct config_list *from) {
    for (unsigned k = 0; k < from->n; k++)
        profile_list_add(to, from->items[k]);
}

/* A host directory for the workspaces of live sandboxes. */
static int check_mount(const char *text, struct mount_words *all, unsigned n, struct err *e) {
    struct stat st;
    if (n == MOUNTS_MAX)
        return err_user(e, "bad_value", "live_bind has more than %d directories", MOUNTS_MAX);
    if (mount_words_parse(text, &all[n], e) < 0)
        return err_wrap(e, "live_bind");
    for (unsigned i = 0; i < n; i++) {
        if (mount_words_clash(&all[i], &all[n]))
            return err_user(e, "bad_value", "live_bind has %s and %s: one is in the other",
                            all[i].path, all[n].path);
    }
    if (stat(all[n].host, &st) < 0 || !S_ISDIR(st.st_mode))
        return err_user(e, "bad_value", "live_bind: %s is no directory; make it first",
                        all[n].host);
    return 0;
}

static int read_mounts(const char *text, struct config_list *ret, struct err *e) {
    struct mount_words all[MOUNTS_MAX + 1];
    for (const char *at = text; *at;) {
        size_t n = strcspn(at, ",");
        AUTO_FREE char *one = xstrndup(at, n);
        at += n + (at[n] == ',');
        if (check_mount(one, all, ret->n, e) < 0)
            return -1;
        profile_list_add(ret, one);
    }
    return 0;
}

static int check_allowed(const char *text, struct allow_words *ret, struct err *e) {
    struct stat st;
    if (allow_words_parse(text, ret, e) < 0)
        return err_wrap(e, "bind_allow");
    if (stat(ret->host, &st) < 0 || !S_ISDIR(st.st_mode))
        return err_user(e, "bad_value", "bind_allow: %s is no directory; make it first", ret->host);
    return 0;
}

static int read_allowed(const char *text, struct config_list *ret, struct err *e) {
    for (const char *at = text; *at;) {
        struct allow_words ignored;
        size_t n = strcspn(at, ",");
        AUTO_FREE char *one = xstrndup(at, n);
        at += n + (at[n] == ',');
        if (ret->n == MOUNTS_MAX)
            return err_user(e, "bad_value", "bind_allow has more than %d directories", MOUNTS_MAX);
        if (check_allowed(one, &ignored, e) < 0)
            return -1;
        profile_list_add(ret, one);
    }
    return 0;
}

/* Behind each profile's own zygote another one, with IPython: see CONFIG_LIVE. */
static int add_twins(const struct options *o, struct config *c, struct err *e) {
    unsigned n = c->nprofiles;
    uint32_t pool = 0;
    explicit_number(o, "live_pool", &pool);
    for (unsigned i = 0; i < n; i++) {
        const struct config_profile *p = &c->profiles[i];
        struct config_profile *twin = &c->profiles[c->nprofiles++];
        struct buf name = BUF_INIT;
        buf_addf(&name, "%s" CONFIG_LIVE, p->name);
        *twin = (struct config_profile){.name = buf_take(&name),
                                        .python = xstrdup(p->python),
                                        .pool = pool,
                                        .zygotes = 1,
                                        .live = 1};
        list_copy(&twin->sites, &p->sites);
        list_copy(&twin->preload, &p->preload);
        list_copy(&twin->binds, &p->binds);
        list_copy(&twin->env, &p->env);
        twin->limits = p->limits;
        if (read_mounts(options_text(o, "live_bind"), &twin->mounts, e) < 0 ||
            read_allowed(options_text(o, "bind_allow"), &twin->allowed, e) < 0)
            return -1;
    }
    return 0;
}

static int add_all(const struct source *s, json_t *definitions, struct config *c, struct err *e) {
    const char *name, *where;
    json_t *definition;
    json_object_foreach(definitions, name, definition) {
        if (json_is_object(find_definition(s, name, &where)) && add(s, name, c, e) < 0)
            return -1;
    }
    return 0;
}

static int add_chosen(const struct source *s, struct config *c, struct err *e) {
    if (add_named(s, c, e) < 0)
        return -1;
    if (options_origin(s->o, "profiles") != ORIGIN_DEFAULT)
        return 0;
    return add_all(s, options_profiles(s->o), c, e) < 0 ? -1 : add_all(s, s->made, c, e);
}

int profiles_resolve(const struct options *o, struct config *c, struct err *e) {
    struct source s = {o, NULL};
    int rc = check_definitions(o, e);
    if (rc == 0)
        rc = made_read(options_text(o, "profiles_dir"), &s.made, e);
    if (rc == 0)
        rc = add_chosen(&s, c, e);
    json_decref(s.made);
    if (rc < 0)
        return -1;
    if (c->nprofiles == 0)
        return err_user(e, "bad_config", "no profile is to be started");
    if (strcmp(options_text(o, "live"), "on") == 0 && strcmp(c->http.mode, "on") == 0)
        return add_twins(o, c, e);
    return 0;
}

static bool is_name_byte(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

/* Does the top-level name of the module stand in the code, as a word? */
static bool mentions(const char *code, size_t len, const char *module) {
    size_t n = strcspn(module, ".");
    const char *p = code, *end = code + len;
    while (n && (p = memmem(p, (size_t)(end - p), module, n))) {
        if ((p == code || !is_name_byte(p[-1])) && (p + n == end || !is_name_byte(p[n])))
            return true;
        p++;
    }
    return false;
}

/* Does the code name a module that this profile has and the first one has not? */
static bool may_suit(const struct config *c, unsigned i, const char *code, size_t len) {
    const struct config_list *first = &c->profiles[0].preload, *l = &c->profiles[i].preload;
    for (unsigned k = 0; k < l->n; k++) {
        bool common = false;
        for (unsigned m = 0; m < first->n && !common; m++)
            common = strcmp(first->items[m], l->items[k]) == 0;
        if (!common && mentions(code, len, l->items[k]))
            return true;
    }
    return false;
}

int profiles_narrow(struct config *c, const char *name, const char *code, size_t len,
                    struct err *e) {
    bool keep[CONFIG_MAX_PROFILES] = {false}, any = false;
    for (unsigned i = 0; i < c->nprofiles; i++) {
        if (c->profiles[i].live)
            continue; /* those are reached over HTTP only */
        if (strcmp(name, "auto") == 0)
            keep[i] = i == 0 || may_suit(c, i, code, len);
        else
            keep[i] = strcmp(name, c->profiles[i].name) == 0;
        any = any || keep[i];
    }
    if (!any) {
        char quoted[64];
        return err_user(e, "unknown_profile", "there is no profile %s",
                        log_quote(name, quoted, sizeof quoted));
    }
    /* Those to keep move to the front; the others are freed as a configuration of their own. */
    struct config out = {0};
    unsigned n = 0;
    for (unsigned i = 0; i < c->nprofiles; i++) {
        if (keep[i])
            c->profiles[n++] = c->profiles[i];
        else
            out.profiles[out.nprofiles++] = c->profiles[i];
    }
    c->nprofiles = n;
    config_done(&out);
    for (unsigned i = 0; i < n; i++)
        c->profiles[i].pool = c->profiles[i].zygotes = 1;
    return 0;
}
