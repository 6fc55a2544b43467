/* See build.h. Theory of operation: the sandbox is one of the profile that the tenant's is made
 * from, and the program in it is our build.py. It leaves two files in its workspace; when both are
 * there, the run waits (run_next_file) while a thread reads the one and takes the other apart into
 * a directory of the shelf that has no name yet. So the archive is never in our memory, and the
 * sandbox's disk is the only copy of it.
 *
 * SECURITY: both files are a stranger's. They are bounded by the sandbox's disk, by the tenant's
 * part of ours, and by what built.h and environment.h let through. */

#include "api/profiles/build.h"

#include "api/core/audit.h"
#include "api/core/quota.h"
#include "api/jobs/account.h"
#include "api/jobs/event_schemas.h"
#include "api/jobs/records.h"
#include "api/profiles/own.h"
#include "api/profiles/shelf.h"
#include "api/profiles/view.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/utf8_stream.h"
#include "config/built.h"
#include "engine/network/terms.h"
#include "engine/oneshot/result.h"
#include "engine/oneshot/run.h"
#include "engine/said/told.h"
#include "loop/crew.h"
#include "pack/environment.h"
#include "wire/mounts.h"
#include "wire/run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUILDS_MAX  4 /* at once, of all tenants */
#define CODE_MOST   (256u << 10)
#define RESULT_MOST (1u << 20)
#define REASON_MOST 8192u /* of a result that only says why there is nothing */
#define RESULT_DEEP 16
#define OUTPUT_MOST (4u << 20)
#define TREE_MODE   0755
#define FULL        "its disk is full" /* as build.py says it */

static const char result_name[] = "result.json", archive_name[] = "profile.tar.gz";

enum step { STEP_READ, STEP_UNPACK, STEP_WRITE };

struct build {
    struct caller who;
    struct own_profiles *all;
    struct own_profile *profile; /* borrowed; NULL: it was called off */
    struct run *run;             /* borrowed until it is done */
    struct record *record;
    struct audit_code code;
    struct utf8_stream utf8[2];
    int result, archive; /* owned: of the sandbox */
    /* with the crew while it works */
    bool working, is_whole, failed;
    atomic_bool is_off; /* the thread need not go on */
    enum step step;
    struct work work;
    struct environment env;
    struct buf path;
    char id[ID_MAX], version[16];
    json_t *about; /* owned: what the profile's becomes */
    struct err why;
};

static void build_free(struct build *b) {
    if (b->path.len && !b->is_whole)
        shelf_remove_fresh(b->all->dir, b->all->crew, b->id);
    b->all->builds--;
    fd_close(&b->result);
    fd_close(&b->archive);
    buf_done(&b->path);
    json_decref(b->about);
    audit_code_done(&b->code);
    free(b);
}

/* Ready or broken: its record ends with that, and the build is over. */
static void build_end(struct build *b) {
    struct own_profile *p = b->profile;
    AUTO_BUF json = BUF_INIT;
    p->build = NULL;
    profile_put_own(p, false, &json);
    record_event(b->record, "end", json.data, json.len);
    record_end(b->record, json.data);
    log_info("profile %s id=%s tenant=%s why=%s", p->state == OWN_READY ? "made" : "not made",
             p->id, p->tenant, log_text(p->why));
    build_free(b);
}

static void build_fail(struct build *b, const char *why) {
    own_broken(b->profile, why);
    build_end(b);
}

/* ---- in a thread ---- */

static int read_result(int fd, size_t most, json_t **ret, struct err *e) {
    AUTO_BUF text = BUF_INIT;
    size_t len;
    struct err why;
    *ret = NULL;
    if (fd_read_all(fd, buf_reserve(&text, most), most, &len, &why) < 0 ||
        json_read(text.data, len, RESULT_DEEP, ret, &why) < 0 || !json_is_object(*ret))
        return err_user(e, "build_failed", "what came out of its sandbox cannot be read");
    return 0;
}

static int step_read(struct build *b, struct err *e) {
    json_auto_t *result = NULL, *installed = NULL;
    if (read_result(b->result, RESULT_MOST, &result, e) < 0)
        return -1;
    const char *error = json_string_value(json_object_get(result, "error"));
    const char *version = built_version(result);
    if (error)
        return err_user(e, "build_failed", "%.280s", error);
    if (!version || !strchr(version, '.'))
        return err_user(e, "build_failed", "what came out of its sandbox names no Python");
    snprintf(b->version, sizeof b->version, "%s", version);
    if (built_installed(json_object_get(result, "installed"), &installed, e) < 0)
        return -1;
    json_object_set(b->about, "installed", installed);
    json_object_set_new(b->about, "version", json_string(version));
    b->env.path = b->path.data;
    b->env.version = b->version;
    b->env.dirs = TREE_MODE;
    return environment_begin(&b->env, b->archive, e);
}

static int step_write(struct build *b, struct err *e) {
    json_object_set_new(b->about, "bytes", json_integer((json_int_t)b->env.bytes));
    json_object_set_new(b->about, "files", json_integer(b->env.files));
    AUTO_FREE char *text = json_dumps(b->about, JSON_INDENT(1));
    if (!text)
        return err_set(e, ENOMEM, "profile");
    return shelf_write_about(b->all->dir, b->id, text, strlen(text), e);
}

/* 1 when there is more to do. */
static int build_step(struct build *b, struct err *e) {
    int r;
    switch (b->step) {
    case STEP_READ:
        b->step = STEP_UNPACK;
        return step_read(b, e) < 0 ? -1 : 1;
    case STEP_UNPACK:
        r = environment_step(&b->env, e);
        if (r == 0)
            b->step = STEP_WRITE;
        return r < 0 ? -1 : 1;
    case STEP_WRITE:
        return step_write(b, e);
    }
    return 0;
}

static bool build_slice(struct work *w) {
    struct build *b = w->arg;
    int r = b->is_off ? -1 : build_step(b, &b->why);
    if (r > 0)
        return true;
    b->failed = r < 0;
    environment_end(&b->env);
    return false;
}

/* ---- in the loop ---- */

static void build_worked(struct work *w) {
    struct build *b = w->arg;
    b->working = false;
    fd_close(&b->result);
    fd_close(&b->archive);
    if (b->profile)
        run_next_file(b->run); /* which ends it: build_on_done */
    else
        build_free(b);
}

/* What the tenant may still have of the disk; 0: nothing. */
static uint64_t room_of(const struct build *b) {
    const struct api *a = b->who.api;
    uint64_t most = (uint64_t)a->config->http.tenant_profiles_mb << 20;
    uint64_t has = own_bytes(a, b->who.tenant);
    return has < most ? most - has : 0;
}

static void work_begin(struct build *b) {
    struct err e;
    b->env.most = room_of(b) ? room_of(b) : 1; /* 0 is no bound */
    shelf_fresh_path(b->all->dir, b->id, &b->path);
    buf_adds(&b->path, "/" TREE_FILES);
    b->working = true;
    b->work = (struct work){.slice = build_slice,
                            .done = build_worked,
                            .arg = b,
                            .owner = crew_owner(b->who.tenant),
                            .is_long = true};
    if (shelf_begin(b->all->dir, b->id, &e) < 0) {
        b->why = e;
        b->failed = true;
        b->working = false;
        return;
    }
    crew_add(b->all->crew, &b->work);
}

static bool build_on_file(void *arg, const char *path, uint64_t size, int *fd) {
    struct build *b = arg;
    int *to = strcmp(path, result_name) == 0    ? &b->result
              : strcmp(path, archive_name) == 0 ? &b->archive
                                                : NULL;
    (void)size;
    if (!to || *to >= 0)
        return false;
    *to = fd_take(fd);
    if (b->result < 0 || b->archive < 0)
        return false;
    work_begin(b);
    return b->working;
}

static void emit(struct build *b, int stream, const struct buf *text) {
    AUTO_BUF json = BUF_INIT;
    if (text->len == 0)
        return;
    utf8_stream_json(text, &json);
    record_event(b->record, stream == 1 ? "stdout" : "stderr", json.data, json.len);
}

static void build_on_output(void *arg, int stream, const void *data, size_t len) {
    struct build *b = arg;
    AUTO_BUF text = BUF_INIT;
    utf8_stream_add(&b->utf8[stream == 1 ? 0 : 1], data, len, &text);
    emit(b, stream, &text);
}

static void build_on_start(void *arg, struct run *r) {
    struct build *b = arg;
    AUTO_BUF json = BUF_INIT;
    told_start(run_id(r), NULL, false, &json);
    record_event(b->record, "start", json.data, json.len);
}

/* In which way a program ended that left nothing to take apart. */
static void explain(const struct build *b, const struct run *r, char *out, size_t cap) {
    const struct config *c = b->who.api->config;
    json_auto_t *result = NULL;
    struct err e;
    const char *status = run_receipt(r).status, *error = NULL;
    int code = run_exit_status(r);
    if (b->result >= 0 && read_result(b->result, REASON_MOST, &result, &e) == 0)
        error = json_string_value(json_object_get(result, "error"));
    if (strcmp(status, "timeout") == 0)
        snprintf(out, cap, "it was not done within %u s (setting build_seconds)", c->build_s);
    else if (strcmp(status, "memory_exceeded") == 0)
        snprintf(out, cap, "it needs more than %u MB of memory (setting build_memory_mb)",
                 c->build_memory_mb);
    else if (code == 3 || (error && strcmp(error, FULL) == 0))
        snprintf(out, cap, "it needs more than %u MB of disk (setting build_disk_mb)",
                 c->build_disk_mb);
    else if (error)
        snprintf(out, cap, "%.280s", error);
    else
        snprintf(out, cap, "its build ended with status %d", code);
}

static void explain_files(const struct build *b, char *out, size_t cap) {
    const struct err *e = &b->why;
    if (strcmp(e->kind, "too_large") == 0)
        snprintf(out, cap,
                 "it needs more of the disk than the %llu MB that are left of %u MB (setting "
                 "tenant_profiles_mb): delete a profile that is not needed",
                 (unsigned long long)(b->env.most >> 20),
                 b->who.api->config->http.tenant_profiles_mb);
    else if (e->code == ENOSPC || e->code == EDQUOT)
        snprintf(out, cap, "the server's disk is full");
    else if (strcmp(e->kind, "output_failed") == 0 && e->code)
        snprintf(out, cap, "the server cannot keep its files: %s", strerror(e->code));
    else
        snprintf(out, cap, "%.280s", e->text);
}

static int commit(struct build *b, struct err *e) {
    struct own_profile *p = b->profile;
    /* Another one was quicker, or many small files count for more than their bytes. */
    if (own_size(b->env.bytes, b->env.files) > room_of(b)) {
        err_user(&b->why, "too_large", "of all its files");
        b->env.most = room_of(b);
        explain_files(b, e->text, sizeof e->text);
        return -1;
    }
    if (shelf_commit(b->all->dir, b->id, e) < 0)
        return -1;
    b->is_whole = true;
    json_decref(p->about);
    p->about = json_incref(b->about);
    return own_ready(p, e);
}

static void build_on_done(void *arg, struct run *r, const struct err *why) {
    struct build *b = arg;
    struct receipt t = run_receipt(r);
    struct err e = {0};
    char text[sizeof b->profile->why];
    for (int s = 0; s < 2; s++) {
        AUTO_BUF rest = BUF_INIT;
        utf8_stream_end(&b->utf8[s], &rest);
        emit(b, s + 1, &rest);
    }
    account_execution(&b->who, run_id(r), &b->code, &t, why ? why->kind : NULL);
    b->run = NULL;
    if (why) {
        build_fail(b, why->text);
    } else if (b->failed) {
        explain_files(b, text, sizeof text);
        build_fail(b, text);
    } else if (!b->path.len) {
        explain(b, r, text, sizeof text);
        build_fail(b, text);
    } else if (commit(b, &e) < 0) {
        build_fail(b, e.text);
    } else {
        build_end(b);
    }
}

void build_cancel(struct own_profile *p) {
    struct build *b = p->build;
    AUTO_BUF json = BUF_INIT;
    own_broken(p, "it was called off");
    profile_put_own(p, false, &json);
    record_event(b->record, "end", json.data, json.len);
    record_end(b->record, json.data);
    p->build = NULL;
    b->profile = NULL;
    b->is_off = true;
    run_cancel(b->run);
    b->run = NULL;
    if (!b->working)
        build_free(b);
}

/* ---- its beginning ---- */

static int read_code(const struct config *c, struct run_request *q, struct err *e) {
    AUTO_BUF path = BUF_INIT;
    AUTO_BUF code = BUF_INIT;
    size_t len;
    buf_addf(&path, "%s/profile/build.py", c->pylib);
    AUTO_FD fd = open(path.data, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, "%s", path.data);
    if (fd_read_all(fd, buf_reserve(&code, CODE_MOST), CODE_MOST, &len, e) < 0)
        return -1;
    return memfd_of("build", code.data, len, &q->code_fd, e); /* a message would not hold it */
}

/* What it may reach, which is no matter of what `network` grants to programs. */
static int read_network(const struct config *c, struct network_terms **ret, struct err *e) {
    struct config only = *c;
    only.network = c->build_network;
    struct network_rules *rules = network_rules_read(&only, e);
    struct network_terms *t = rules ? network_terms_most(rules, NULL, e) : NULL;
    network_rules_free(rules);
    *ret = t && !t->is_none ? t : NULL;
    if (t && t->is_none)
        network_terms_free(t);
    return t ? 0 : -1;
}

static int add_plan(const struct config *c, const struct own_profile *p, struct run_request *q,
                    struct err *e) {
    json_auto_t *plan =
        json_pack("{s:O, s:b, s:b, s:b, s:b, s:s}", "packages",
                  json_object_get(p->about, "requirements"), "system_packages", 0, "allow_builds",
                  0, "live", 0, "network", q->network != NULL, "index", c->pip_index_url);
    AUTO_FREE char *text = plan ? json_dumps(plan, JSON_COMPACT) : NULL;
    if (!text)
        return err_set(e, ENOMEM, "plan");
    struct input_file *in = q->inputs = xcalloc(1, sizeof *in);
    q->ninputs = 1;
    *in = (struct input_file){
        .path = xstrdup("build.json"), .mode = 0644, .fd = -1, .size = strlen(text)};
    if (in->size <= INPUT_BYTES)
        in->bytes = xstrdup(text);
    else
        return memfd_of("plan", text, strlen(text), &in->fd, e);
    return 0;
}

static int make_request(const struct caller *who, const struct own_profile *p,
                        struct run_request *q, struct err *e) {
    const struct config *c = who->api->config;
    uint32_t cpus = c->maxima.cpus_percent > 100 ? c->maxima.cpus_percent : 100;
    *q = (struct run_request){
        .flags = RUN_FILES,
        .tenant = xstrdup(who->tenant),
        .profile = xstrdup(json_string_value(json_object_get(p->about, "from"))),
        .limits = {.timeout_ms = c->build_s > UINT32_MAX / 1000 ? UINT32_MAX : c->build_s * 1000,
                   .memory_mb = c->build_memory_mb,
                   .cpu_seconds = c->build_s * (cpus / 100),
                   .cpus_percent = cpus,
                   .pids = 128,
                   .disk_mb = c->build_disk_mb,
                   .open_files = 512,
                   .output_bytes = OUTPUT_MOST},
        .code_fd = -1,
        .unbound = true};
    if (read_code(c, q, e) < 0 || read_network(c, &q->network, e) < 0)
        return -1;
    return add_plan(c, p, q, e);
}

static void audit_requirements(struct build *b) {
    AUTO_BUF all = BUF_INIT;
    const json_t *line;
    size_t i;
    json_array_foreach(json_object_get(b->profile->about, "requirements"), i, line) {
        buf_addf(&all, "%s\n", json_string_value(line));
    }
    bool keep = strcmp(b->who.api->config->http.audit_code, "on") == 0;
    audit_code(&b->code, all.len ? all.data : "", all.len, keep);
}

static int check_room(const struct caller *who, struct problem *ret) {
    const struct api *a = who->api;
    unsigned own = 0, share = quota_share(a, who->tenant, BUILDS_MAX);
    for (struct own_profile *p = NULL; (p = own_next(a, who->tenant, p));)
        own += p->build != NULL;
    if (own < share && a->own->builds < BUILDS_MAX)
        return 0;
    return problem_set(ret, "too_many_builds", "%u profiles are being built, as many as may be",
                       own < share ? a->own->builds : own);
}

int build_begin(const struct caller *who, struct own_profile *p, struct problem *ret) {
    struct run_request q = {.code_fd = -1};
    struct err e;
    if (check_room(who, ret) < 0 || quota_may_run(who, ret) < 0)
        return -1;
    if (make_request(who, p, &q, &e) < 0) {
        log_error("build not begun request=%s error=%s", who->request, log_text(e.text));
        run_request_done(&q);
        *ret = problem_of(&e);
        return -1;
    }
    struct build *b = xcalloc(1, sizeof *b);
    b->who = *who;
    b->all = p->all;
    b->all->builds++;
    b->profile = p;
    b->result = b->archive = -1;
    b->path = (struct buf)BUF_INIT;
    b->env = (struct environment){.to = {.fd = -1}, .site = BUF_INIT};
    b->about = json_deep_copy(p->about);
    memcpy(b->id, p->id, sizeof b->id);
    audit_requirements(b);
    id_make("bld_", p->record, sizeof p->record);
    b->record = record_new(who->api->records, p->record, p->tenant);
    p->build = b;
    const struct run_callbacks cb = {.arg = b,
                                     .on_start = build_on_start,
                                     .on_output = build_on_output,
                                     .on_file = build_on_file,
                                     .on_done = build_on_done};
    int r = run_new(who->api->o.engine, &q, &cb, &b->run, &e);
    run_request_done(&q); /* empty when it was taken */
    if (r == 0)
        return 0;
    log_warn("build not begun request=%s error=%s", who->request, log_text(e.text));
    *ret = problem_of(&e);
    record_end(b->record, "{}");
    p->build = NULL;
    build_free(b);
    return -1;
}

/* ---- for the specification ---- */

static const struct schema stdout_event = {EVENT("BuildStdoutEvent", "stdout", utf8_stream_schema)};
static const struct schema stderr_event = {EVENT("BuildStderrEvent", "stderr", utf8_stream_schema)};
static const struct schema start_event = {EVENT("BuildStartEvent", "start", start_schema)};
static const struct schema end_event = {EVENT("BuildEndEvent", "end", profile_schema)};
const struct schema build_events_schema = {
    "BuildEvents", ONE_OF(&start_event, &stdout_event, &stderr_event, &end_event)};
