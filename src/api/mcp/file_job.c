/* See file_job.h. */

#include "api/mcp/file_job.h"

#include "api/core/api_state.h"
#include "api/files/file_problem.h"
#include "api/files/paths.h"
#include "api/mcp/place.h"
#include "base/log.h"
#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct live *file_job_look(const struct file_job *f, struct err *e) {
    const struct caller *who = &mcp_who(f->call)->caller;
    return live_find(who->api->o.engine, who->tenant, f->sandbox, e);
}

/* A resource is there or not; a tool says what to do. */
static void file_job_refuse(const struct file_job *f, const struct problem *p) {
    if (mcp_tool(f->call))
        place_problem(f->call, p);
    else
        mcp_fail_no_resource(f->call);
}

struct live *file_job_live(const struct file_job *f) {
    struct err e;
    struct live *l = file_job_look(f, &e);
    if (!l) {
        struct problem p = problem_of(&e);
        file_job_refuse(f, &p);
    }
    return l;
}

static void file_job_free(void *state) {
    struct file_job *f = state;
    struct err e;
    files_unask(&f->ask);
    struct live *l = f->held ? file_job_look(f, &e) : NULL;
    if (l)
        live_release(l);
    if (f->on_done)
        f->on_done(f);
    free(f->path);
    free(f);
}

static void file_job_on_cancel(struct mcp_call *c) {
    mcp_answer(c);
}

void file_job_fail(struct file_job *f, int errnum, const char *why) {
    struct problem p;
    file_problem(&p, errnum, f->writes, why);
    if (p.status == 500)
        log_error("tool failed id=%s errno=%d error=%s", mcp_who(f->call)->caller.request, errnum,
                  log_text(why));
    if (strcmp(p.code, "no_such_path") == 0)
        p.remediation = "the tool list_files shows what there is";
    else if (strcmp(p.code, "path_taken") == 0)
        p.remediation = "delete or move what is there with run_shell, or choose another path";
    file_job_refuse(f, &p);
}

static void file_job_on_answer(void *arg, struct file_answer *a) {
    struct file_job *f = arg;
    struct err gone;
    if (a->gone) {
        f->held = false;
        err_user(&gone, "sandbox_gone", "the sandbox is ending");
        const struct problem p = problem_of(&gone);
        file_job_refuse(f, &p);
    } else if (!a->why) {
        f->then(f, a);
    } else if (!f->on_error || !f->on_error(f, a->why->code)) {
        file_job_fail(f, a->why->code, a->why->text);
    }
}

void file_job_ask(struct file_job *f, const struct file_question *q, file_job_fn *then) {
    struct problem p;
    struct live *l = file_job_live(f);
    if (!l)
        return;
    f->then = then;
    if (files_ask(live_sandbox(l), q, &f->ask))
        return;
    file_problem_busy(&p);
    file_job_refuse(f, &p);
}

/* Models write paths as programs inside see them. NULL: it is elsewhere. */
static const char *within(const char *path) {
    static const char *const roots[] = {"/workspace", "/app"};
    for (size_t i = 0; i < sizeof roots / sizeof *roots; i++) {
        size_t n = strlen(roots[i]);
        if (strncmp(path, roots[i], n) == 0 && (path[n] == '/' || path[n] == '\0'))
            return path + n + strspn(path + n, "/");
    }
    return *path == '/' ? NULL : path;
}

static bool file_job_set_path(struct file_job *f, const char *path) {
    AUTO_BUF shown = BUF_INIT;
    text_add_plain(&shown, path, strlen(path) < 200 ? strlen(path) : 200);
    const char *inside = within(path);
    struct problem p;
    if (!inside) {
        problem_bad_value(&p, "other files can be read with run_shell",
                          "path is \"%.200s\"; it must be in /workspace", shown.data);
        file_job_refuse(f, &p);
        return false;
    }
    f->path = xstrdup(inside);
    const char *wrong = paths_normal(f->path);
    if (!wrong && strlen(f->path) > ENTRY_PATH_MAX)
        wrong = "File paths have at most 4095 bytes.";
    if (!wrong)
        return true;
    file_problem_bad_path(&p, f->path, wrong);
    file_job_refuse(f, &p);
    return false;
}

void *file_job_new(struct mcp_call *c, struct live *l, const char *path, size_t size,
                   void (*on_done)(struct file_job *f)) {
    struct file_job *f = xcalloc(1, size);
    f->call = c;
    f->ask = (struct file_ask){.fn = file_job_on_answer, .arg = f};
    snprintf(f->sandbox, sizeof f->sandbox, "%s", live_id(l));
    mcp_keep(c, f, file_job_free);
    mcp_on_cancel(c, file_job_on_cancel);
    if (!file_job_set_path(f, path))
        return NULL;
    f->on_done = on_done;
    f->held = true;
    live_hold(l);
    return f;
}
