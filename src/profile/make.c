/* See make.h. Nothing is where others look for it before all of it worked. */

#include "profile/make.h"

#include "base/buf.h"
#include "base/fd.h"
#include "config/built.h"
#include "config/made.h"
#include "config/options.h"
#include "config/profile_read.h"
#include "pack/environment.h"
#include "profile/place.h"
#include "profile/record.h"
#include "profile/script.h"
#include "profile/try_out.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define OUTPUT_MOST (64u << 20)

static const char *said(const json_t *o, const char *key) {
    return json_string_value(json_object_get(o, key));
}

struct limits make_limits(const struct profile_options *o) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t n = cores > 0 && cores < 64 ? (uint32_t)cores : 1;
    return (struct limits){.timeout_ms = o->build_timeout_s * 1000,
                           .memory_mb = o->build_memory_mb,
                           .cpu_seconds = o->build_timeout_s * n,
                           .cpus_percent = n * 100,
                           .pids = 128,
                           .disk_mb = o->build_disk_mb,
                           .open_files = 512,
                           .output_bytes = OUTPUT_MOST};
}

static int check_version(const json_t *result, struct err *e) {
    if (built_version(result))
        return 0;
    return err_user(e, "build_failed", "what came out of the sandbox names no version of Python");
}

static int run_build(struct making *m, const char *out, json_t **ret, struct err *e) {
    const char *links = said(m->build, "find_links");
    const char *network = options_text(m->cmd->options, "build_network");
    const struct config_profile like = {.python = (char *)(uintptr_t)said(m->build, "python")};
    const struct script s = {.name = "build",
                             .plan = m->plan,
                             .files = {m->files[0], m->files[1]},
                             .file_names = {m->file_names[0], m->file_names[1]},
                             .out = out,
                             .quiet = m->cmd->json,
                             .network = links ? NULL : network,
                             .wheels = links,
                             .limits = make_limits(m->cmd),
                             .like = &like};
    json_object_set_new(m->plan, "network", json_boolean(!links));
    if (script_run(m->cmd->options, &s, ret, e) < 0)
        return -1;
    const char *why = said(*ret, "error");
    if (why && strcmp(why, "its disk is full") == 0)
        return err_user(e, "build_failed", "it needs more than %u MB of disk (--build-disk)",
                        m->cmd->build_disk_mb);
    return why ? err_user(e, "build_failed", "%.300s", why) : check_version(*ret, e);
}

static int unpack(struct making *m, const char *out, const json_t *result, struct err *e) {
    AUTO_BUF archive = BUF_INIT;
    AUTO_BUF env = BUF_INIT;
    buf_addf(&archive, "%s/profile.tar.gz", out);
    buf_addf(&env, "%s/" MADE_ENV, m->place->fresh.data);
    AUTO_FD fd = open(archive.data, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return err_user(e, "build_failed", "nothing came out of the sandbox");
    struct environment x = {.path = env.data,
                            .python = said(m->build, "python"),
                            .version = said(result, "python"),
                            .most = (uint64_t)m->cmd->build_disk_mb << 20,
                            .system_packages =
                                json_is_true(json_object_get(m->build, "system_packages"))};
    if (environment_unpack(&x, fd, e) < 0) {
        const struct err was = *e;
        return strcmp(was.kind, "bad_archive") == 0 || strcmp(was.kind, "too_large") == 0
                   ? err_user(e, "build_failed", "what came out of the sandbox: %.250s", was.text)
                   : -1;
    }
    json_object_set_new(m->build, "bytes", json_integer((json_int_t)x.bytes));
    json_object_set_new(m->build, "files", json_integer(x.files));
    return 0;
}

static void remember(struct making *m, const json_t *result) {
    static const char *const keys[] = {"requirements", "live_what", "left_out"};
    char when[32] = "";
    time_t now = time(NULL);
    struct tm tm;
    json_object_set(m->build, "version", json_object_get(result, "python"));
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        /* Of a lock only what it leads to is new. */
        if (!json_object_get(m->build, keys[i]))
            json_object_set(m->build, keys[i], json_object_get(result, keys[i]));
    }
    if (gmtime_r(&now, &tm))
        strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &tm);
    json_object_set_new(m->build, "made", json_string(when));
}

/* The modules that start threads are for the programs to import. */
static void keep_lazy(struct making *m, const json_t *costs) {
    json_t *lazy = json_array(), *preload = json_object_get(m->profile, "preload");
    for (size_t k = json_array_size(preload); k-- > 0;) {
        json_t *name = json_array_get(preload, k);
        if (!try_is_lazy(costs, json_string_value(name)))
            continue;
        json_array_append(lazy, name);
        json_array_remove(preload, k);
    }
    json_object_set_new(m->build, "lazy", lazy);
}

static int try_fresh(struct making *m, const char *out, json_t **ret, struct err *e) {
    AUTO_BUF python = BUF_INIT;
    buf_addf(&python, "%s/" MADE_PYTHON, m->place->fresh.data);
    struct config scratch = {.nprofiles = 1};
    struct config_profile *p = &scratch.profiles[0];
    p->name = xstrdup(m->place->name);
    int rc = profile_read(m->place->name, m->profile, p, e);
    free(p->python);
    p->python = xstrdup(python.data);
    const struct trying t = {
        .options = m->cmd->options, .profile = p, .out = out, .limits = make_limits(m->cmd)};
    if (rc == 0)
        rc = try_out(&t, ret, e);
    config_done(&scratch);
    return rc;
}

/* From the first script on signals wait to be asked for. */
static int check_signals(struct err *e) {
    sigset_t set;
    if (sigpending(&set) == 0 && (sigismember(&set, SIGINT) || sigismember(&set, SIGTERM)))
        return err_user(e, "interrupted", "interrupted; nothing was changed");
    return 0;
}

static int make_all(struct making *m, json_t **ret, struct err *e) {
    AUTO_BUF first = BUF_INIT;
    AUTO_BUF second = BUF_INIT;
    json_auto_t *result = NULL, *installed = NULL, *record = NULL;
    buf_addf(&first, "%s/out", m->place->fresh.data);
    buf_addf(&second, "%s/tried", m->place->fresh.data);
    if (place_begin(m->place, e) < 0 || run_build(m, first.data, &result, e) < 0 ||
        built_installed(json_object_get(result, "installed"), &installed, e) < 0 ||
        unpack(m, first.data, result, e) < 0)
        return -1;
    remember(m, result);
    if (try_fresh(m, second.data, ret, e) < 0)
        return -1;
    keep_lazy(m, *ret);
    if (said(m->build, "live_what"))
        json_object_set_new(
            *ret, "live", json_sprintf("no IPython, so none: %.200s", said(m->build, "live_what")));
    record = json_pack("{s:O, s:O, s:O}", "profile", m->profile, "build", m->build, "installed",
                       installed);
    if (record_write(m->place->fresh.data, record, e) < 0)
        return -1;
    place_forget(m->place, "out");
    place_forget(m->place, "tried");
    return check_signals(e) < 0 ? -1 : place_commit(m->place, e);
}

int make_profile(struct making *m, json_t **ret, struct err *e) {
    *ret = NULL;
    if (make_all(m, ret, e) == 0)
        return 0;
    json_decref(*ret);
    *ret = NULL;
    if (strcmp(e->kind, "interrupted") == 0)
        return -1;
    return err_wrap(e, "profile %s was not made", m->place->name);
}

void make_done(struct making *m) {
    json_decref(m->profile);
    json_decref(m->build);
    json_decref(m->plan);
}
