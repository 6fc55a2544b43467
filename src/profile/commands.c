/* See commands.h. */

#include "profile/commands.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/rmtree.h"
#include "cli/report.h"
#include "config/config.h"
#include "config/made.h"
#include "config/options.h"
#include "config/resolve.h"
#include "profile/apt.h"
#include "profile/make.h"
#include "profile/place.h"
#include "profile/print.h"
#include "profile/python.h"
#include "profile/record.h"
#include "profile/tell.h"
#include "profile/try_out.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *dir_of(const struct profile_options *o) {
    return options_text(o->options, "profiles_dir");
}

static const struct config_profile *find_profile(const struct config *c, const char *name) {
    for (unsigned i = 0; i < c->nprofiles; i++) {
        if (strcmp(c->profiles[i].name, name) == 0)
            return &c->profiles[i];
    }
    return NULL;
}

static void print_json(const char *name, const char *key, const json_t *value) {
    json_auto_t *whole = json_pack("{s:s, s:O}", "name", name, key, value);
    AUTO_FREE char *text = json_dumps(whole, JSON_COMPACT);
    puts(text ? text : "{}");
}

/* ---- what is to be made ---- */

static json_t *limits_json(const struct limits *l) {
    json_t *o = json_object();
    for (size_t i = 0; i < LIMITS_; i++) {
        uint64_t v = limits_value(l, i);
        if (v && limits_info[i].type == LIMIT_CORES)
            json_object_set_new(o, limits_info[i].name, json_real((double)v / 100));
        else if (v)
            json_object_set_new(o, limits_info[i].name, json_integer((json_int_t)v));
    }
    return o;
}

static void add_words(json_t *to, const char *list) {
    while (list && *list) {
        size_t n = strcspn(list, ", ");
        if (n)
            json_array_append_new(to, json_stringn(list, n));
        list += n + (list[n] != '\0');
    }
}

static void update(json_t *to, const char *key, json_t *more) {
    json_t *old = json_object_get(to, key);
    if (old)
        json_object_update(old, more);
    else
        json_object_set(to, key, more);
    json_decref(more);
}

/* What the profile says, over what is there. */
static void add_definition(struct making *m) {
    const struct profile_options *o = m->cmd;
    json_t *env = json_object();
    if (!json_object_get(m->profile, "preload"))
        json_object_set_new(m->profile, "preload", json_array());
    add_words(json_object_get(m->profile, "preload"), o->preload);
    for (unsigned k = 0; k < o->nenv; k++) {
        size_t n = strcspn(o->env[k], "=");
        AUTO_FREE char *name = xstrndup(o->env[k], n);
        json_object_set_new(env, name, json_string(o->env[k] + n + 1));
    }
    update(m->profile, "env", env);
    update(m->profile, "limits", limits_json(&o->limits));
}

static json_t *copy_of(const json_t *o, const char *key, json_t *otherwise) {
    json_t *v = json_object_get(o, key);
    if (!v)
        return otherwise;
    json_decref(otherwise);
    return json_deep_copy(v);
}

/* Modules that start threads are tried again: perhaps this version does not. */
static void retry_lazy(json_t *profile, const json_t *build) {
    json_t *preload = json_object_get(profile, "preload");
    if (json_is_array(preload) && json_is_array(json_object_get(build, "lazy")))
        json_array_extend(preload, json_object_get(build, "lazy"));
}

/* --from: a made profile with its packages, any other with its Python and its modules. */
static int take_from(struct making *m, const struct config *c, json_t *packages, struct err *e) {
    json_auto_t *record = NULL;
    const char *from = m->cmd->from;
    if (made_read_one(dir_of(m->cmd), from, &record, e) == 0) {
        const json_t *build = json_object_get(record, "build");
        json_object_update(m->profile, json_object_get(record, "profile"));
        retry_lazy(m->profile, build);
        json_array_extend(packages, json_object_get(build, "requirements"));
        json_object_set(m->build, "python", json_object_get(build, "python"));
        if (json_object_get(build, "find_links"))
            json_object_set(m->build, "find_links", json_object_get(build, "find_links"));
        json_object_set(m->build, "system_packages", json_object_get(build, "system_packages"));
        return 0;
    }
    const struct config_profile *p = find_profile(c, from);
    if (!p)
        return -1;
    json_t *preload = json_array();
    for (unsigned k = 0; k < p->preload.n; k++)
        json_array_append_new(preload, json_string(p->preload.items[k]));
    json_object_set_new(m->profile, "preload", preload);
    AUTO_FREE char *real = realpath(p->python, NULL);
    json_object_set_new(m->build, "python", json_string(real ? real : p->python));
    json_object_set_new(m->build, "system_packages", json_true());
    return 0;
}

static int take_links(struct making *m, struct err *e) {
    struct stat st;
    if (!m->cmd->find_links)
        return 0;
    AUTO_FREE char *real = realpath(m->cmd->find_links, NULL);
    if (!real || stat(real, &st) < 0 || !S_ISDIR(st.st_mode))
        return err_user(e, "no_such_file", "--find-links %s is no directory", m->cmd->find_links);
    json_object_set_new(m->build, "find_links", json_string(real));
    return 0;
}

static int check_readable(const char *path, struct err *e) {
    struct stat st;
    if (!path)
        return 0;
    if (stat(path, &st) < 0 || access(path, R_OK) < 0)
        return err_user(e, errno == ENOENT ? "no_such_file" : "not_readable", "%s: %s", path,
                        strerror(errno));
    return S_ISREG(st.st_mode) ? 0 : err_user(e, "not_readable", "%s is no file", path);
}

static int take_python(struct making *m, struct err *e) {
    char *found;
    if (!m->cmd->python && json_object_get(m->build, "python"))
        return 0;
    if (python_find(m->cmd->python, &found, e) < 0)
        return -1;
    json_object_set_new(m->build, "python", json_string(found));
    free(found);
    return 0;
}

/* What build.py is told. */
static void write_plan(struct making *m, const struct config *c, json_t *packages) {
    const struct profile_options *o = m->cmd;
    bool live = strcmp(options_text(o->options, "live"), "on") == 0;
    json_object_set(m->plan, "packages", packages);
    json_object_set(m->plan, "system_packages", json_object_get(m->build, "system_packages"));
    json_object_set(m->plan, "allow_builds", json_object_get(m->build, "allow_builds"));
    json_object_set_new(m->plan, "live", json_boolean(live));
    json_object_set_new(m->plan, "index", json_string(c->pip_index_url));
    m->files[0] = o->requirements;
    m->file_names[0] = "requirements.txt";
    m->files[1] = o->pyproject;
    m->file_names[1] = "pyproject.toml";
    if (o->requirements)
        json_object_set_new(m->plan, "requirements", json_string(m->file_names[0]));
    if (o->pyproject)
        json_object_set_new(m->plan, "pyproject", json_string(m->file_names[1]));
}

static int plan_new(struct making *m, const struct config *c, struct err *e) {
    const struct profile_options *o = m->cmd;
    json_auto_t *packages = json_array();
    m->profile = json_object();
    m->build = json_object();
    m->plan = json_object();
    if (check_readable(o->requirements, e) < 0 || check_readable(o->pyproject, e) < 0 ||
        (o->from && take_from(m, c, packages, e) < 0) || take_python(m, e) < 0 ||
        take_links(m, e) < 0)
        return -1;
    for (unsigned k = 0; k < o->npackages; k++)
        json_array_append_new(packages, json_string(o->packages[k]));
    if (o->system_packages || !json_object_get(m->build, "system_packages"))
        json_object_set_new(m->build, "system_packages", json_boolean(o->system_packages));
    json_object_set_new(m->build, "allow_builds", json_boolean(o->allow_builds));
    if (o->napt) {
        json_t *apt = json_array();
        for (unsigned k = 0; k < o->napt; k++)
            json_array_append_new(apt, json_string(o->apt[k]));
        json_object_set_new(m->build, "apt", apt);
    }
    add_definition(m);
    write_plan(m, c, packages);
    return 0;
}

/* What is in a lock, and nothing else. */
static void plan_locked(struct making *m, const struct config *c, const json_t *record) {
    const json_t *build = json_object_get(record, "build");
    static const char *const keys[] = {"python",          "requirements", "find_links",
                                       "system_packages", "allow_builds", "live_what",
                                       "left_out",        "apt"};
    json_auto_t *lines = record_lock(json_object_get(record, "installed"));
    m->profile = copy_of(record, "profile", json_object());
    m->build = json_object();
    m->plan = json_object();
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (json_object_get(build, keys[i]))
            json_object_set(m->build, keys[i], json_object_get(build, keys[i]));
    }
    retry_lazy(m->profile, build);
    write_plan(m, c, lines);
    json_object_set_new(m->plan, "locked", json_true());
}

/* ---- the verbs ---- */

static int finish_made(const struct making *m, const json_t *costs, const struct told *before,
                       struct err *e) {
    const struct profile_options *o = m->cmd;
    struct place *place = m->place;
    struct told now;
    json_auto_t *record = NULL;
    if (made_read_one(place->dir, place->name, &record, e) < 0)
        return -1;
    if (o->json) {
        print_json(place->name, "costs", costs);
    } else {
        print_line(place->name, record);
        print_costs(costs);
    }
    fflush(stdout);
    tell_reload(o->options, place->name, before, false);
    tell_look(o->options, place->name, &now);
    if (!now.busy)
        place_drop(place);
    return 0;
}

static int make_with(struct making *m, struct err *e) {
    struct told before;
    json_auto_t *costs = NULL;
    tell_look(m->cmd->options, m->place->name, &before);
    if (make_profile(m, &costs, e) < 0)
        return -1;
    return finish_made(m, costs, &before, e);
}

static int add_locked(struct making *m, const struct config *c, struct err *e) {
    const char *name = m->place->name;
    if (place_has(m->place))
        return err_user(e, "profile_exists", "there is a profile %s already", name);
    if (find_profile(c, name))
        return err_user(e, "bad_value",
                        "profile %s is one of the configuration's; choose another name", name);
    if (apt_check(m->cmd, e) < 0 || plan_new(m, c, e) < 0 || apt_install(m->cmd, e) < 0)
        return -1;
    return make_with(m, e);
}

static int sync_locked(struct making *m, const struct config *c, struct err *e) {
    json_auto_t *record = NULL;
    if (made_read_one(m->place->dir, m->place->name, &record, e) < 0)
        return -1;
    plan_locked(m, c, record);
    return take_links(m, e) < 0 ? -1 : make_with(m, e);
}

static int remove_locked(struct making *m, const struct config *c, struct err *e) {
    const struct profile_options *o = m->cmd;
    struct told t;
    (void)c;
    if (!place_has(m->place))
        return err_user(e, "unknown_profile", "there is no profile %s in %s", m->place->name,
                        m->place->dir);
    tell_look(o->options, m->place->name, &t);
    if (t.busy && !o->force)
        return err_user(e, "profile_in_use", "%u sandbox%s of profile %s %s programs or %s live",
                        t.busy, t.busy == 1 ? "" : "es", m->place->name,
                        t.busy == 1 ? "has" : "have", t.busy == 1 ? "is" : "are");
    if (place_retire(m->place, e) < 0)
        return -1;
    tell_reload(o->options, m->place->name, &t, true);
    if (!t.busy)
        place_drop(m->place);
    return 0;
}

/* With the settings, and the name locked. */
static int with_place(const struct profile_options *o,
                      int (*fn)(struct making *m, const struct config *c, struct err *e),
                      struct err *e) {
    struct config c;
    struct place place = PLACE_INIT;
    struct making m = {.cmd = o, .place = &place};
    struct told t;
    if (options_resolve(o->options, &c, e) < 0)
        return -1;
    int rc = place_open(o->options, o->name, &place, e);
    if (rc == 0) {
        rc = fn(&m, &c, e);
        tell_look(o->options, o->name, &t);
        place_sweep(&place, t.state != TELL_NONE, c.live_ttl_max_s);
    }
    make_done(&m);
    place_done(&place);
    config_done(&c);
    return rc;
}

int command_add(const struct profile_options *o, struct err *e) {
    return with_place(o, add_locked, e);
}

int command_sync(const struct profile_options *o, struct err *e) {
    return with_place(o, sync_locked, e);
}

int command_remove(const struct profile_options *o, struct err *e) {
    return with_place(o, remove_locked, e);
}

int command_list(const struct profile_options *o, struct err *e) {
    json_auto_t *all = NULL, *shown = json_array();
    const char *name;
    json_t *definition;
    if (made_read(dir_of(o), &all, e) < 0)
        return -1;
    json_object_foreach(all, name, definition) {
        json_auto_t *record = NULL;
        if (made_read_one(dir_of(o), name, &record, e) < 0)
            return -1;
        if (!o->json)
            print_line(name, record);
        json_object_set_new(record, "name", json_string(name));
        json_array_append(shown, record);
    }
    AUTO_FREE char *text = json_dumps(shown, JSON_COMPACT);
    if (o->json)
        printf("{\"profiles\":%s}\n", text ? text : "[]");
    return 0;
}

int command_show(const struct profile_options *o, struct err *e) {
    json_auto_t *record = NULL;
    if (made_read_one(dir_of(o), o->name, &record, e) < 0)
        return -1;
    if (o->json)
        print_json(o->name, "record", record);
    else
        print_record(o->name, record);
    return 0;
}

static int test_one(const struct profile_options *o, const struct config_profile *p, json_t **ret,
                    struct err *e) {
    char out[] = "/tmp/cloche-profile-XXXXXX";
    if (!mkdtemp(out))
        return err_user(e, "output_failed", "%s: %s", out, strerror(errno));
    const struct trying t = {
        .options = o->options, .profile = p, .out = out, .limits = make_limits(o)};
    int rc = try_out(&t, ret, e);
    rmtree(AT_FDCWD, out);
    return rc < 0 ? err_wrap(e, "profile %s", p->name) : 0;
}

int command_test(const struct profile_options *o, struct err *e) {
    struct config c;
    json_auto_t *costs = NULL;
    if (options_resolve(o->options, &c, e) < 0)
        return -1;
    const struct config_profile *p = find_profile(&c, o->name);
    int rc = p ? test_one(o, p, &costs, e)
               : err_user(e, "unknown_profile", "there is no profile %.40s", o->name);
    config_done(&c);
    if (rc < 0)
        return -1;
    if (o->json)
        print_json(o->name, "costs", costs);
    else
        print_costs(costs);
    return 0;
}
