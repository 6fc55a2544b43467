/* See fc.h. */

#include "api/files/file_call.h"

#include "api/files/file_problem.h"
#include "api/files/paths.h"
#include "base/log.h"
#include "base/num.h"
#include "loop/crew.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static void tell(struct file_call *fc, const struct problem *p) {
    if (fc->begun) {
        log_warn("reply cut id=%s why=%s", fc->call->who.request, p->code);
        http_abort(fc->call->req);
    } else {
        call_problem(fc->call, p);
    }
}

static void tell_err(struct file_call *fc, const struct err *e) {
    struct problem p = problem_of(e);
    if (p.status == 500)
        log_error("request failed id=%s error=%s", fc->call->who.request, log_text(e->text));
    tell(fc, &p);
}

static struct live *look_up(const struct file_call *fc, struct err *e) {
    struct call *c = fc->call;
    return live_find(c->api->o.engine, c->who.tenant, fc->id, e);
}

struct live *file_call_live(struct file_call *fc) {
    struct err e;
    struct live *l = look_up(fc, &e);
    if (!l)
        tell_err(fc, &e);
    return l;
}

static void file_call_free(void *state) {
    struct file_call *fc = state;
    struct err e;
    live_unwatch(&fc->watcher);
    files_unask(&fc->ask);
    struct live *l = fc->held ? look_up(fc, &e) : NULL;
    if (l)
        live_release(l);
    if (fc->on_done)
        fc->on_done(fc);
    free(fc->path);
    free(fc->id);
    free(fc);
}

void file_call_leave(struct file_call *fc) {
    fc->call->state = NULL;
    fc->call->state_done = NULL;
    file_call_free(fc);
}

/* A file of a sandbox that has ended takes memory for as long as somebody reads or writes it, and
 * whoever deletes the sandbox waits for that. So the call ends now; a client that waits for an
 * answer, or still sends, gets one. */
static void file_call_on_end(struct live_watcher *w, const struct err *why) {
    struct file_call *fc = w->arg;
    if (file_call_waits(fc))
        return;
    if (fc->begun) {
        http_abort(fc->call->req);
    } else if (fc->on_gone) {
        fc->on_gone(fc);
        tell_err(fc, why);
    }
}

bool file_call_set_path(struct file_call *fc, const char *path) {
    free(fc->path);
    fc->path = xstrdup(path);
    const char *wrong = paths_normal(fc->path);
    if (!wrong && strlen(fc->path) > ENTRY_PATH_MAX)
        wrong = "File paths have at most 4095 bytes.";
    if (wrong)
        file_call_bad_path(fc, wrong);
    return !wrong;
}

static void file_call_on_answer(void *arg, struct file_answer *a);

void *file_call_new_in(struct call *c, const char *id, const char *path, size_t size,
                       void (*on_done)(struct file_call *fc)) {
    struct file_call *fc = xcalloc(1, size);
    fc->call = c;
    fc->id = xstrdup(id);
    fc->ask = (struct file_ask){.fn = file_call_on_answer, .arg = fc};
    fc->writes = strcmp(http_method(c->req), "PUT") == 0;
    c->state = fc;
    c->state_done = file_call_free;
    struct live *l = file_call_live(fc);
    if (!l)
        return NULL;
    fc->watcher = (struct live_watcher){.on_end = file_call_on_end, .arg = fc};
    live_watch(l, &fc->watcher);
    if (!file_call_set_path(fc, path))
        return NULL;
    fc->on_done = on_done;
    fc->held = true;
    live_hold(l);
    return fc;
}

void *file_call_new(struct call *c, size_t size, void (*on_done)(struct file_call *fc)) {
    return file_call_new_in(c, c->params[0], c->params[1], size, on_done);
}

/* ---- questions ---- */

static void file_call_on_answer(void *arg, struct file_answer *a) {
    struct file_call *fc = arg;
    if (a->gone) {
        fc->held = false;
        if (file_call_live(fc)) /* it is still known: it is about to go */
            tell(fc, &(struct problem){.status = 410,
                                       .code = "sandbox_gone",
                                       .message = "the sandbox is ending",
                                       .remediation = "make another one"});
    } else if (!a->why) {
        fc->then(fc, a);
    } else if (!fc->on_error || !fc->on_error(fc, a->why->code)) {
        file_call_fail(fc, a->why->code, a->why->text);
    }
}

void file_call_ask(struct file_call *fc, const struct file_question *q, file_call_fn *then) {
    const struct live *l = file_call_live(fc);
    if (!l)
        return;
    fc->then = then;
    if (files_ask(live_sandbox(l), q, &fc->ask))
        return;
    struct problem p;
    file_problem_busy(&p);
    tell(fc, &p);
}

void file_call_close(const struct file_call *fc, int *fd) {
    crew_close(fc->call->api->o.engine->crew, fd);
}

bool file_call_waits(const struct file_call *fc) {
    return files_is_asked(&fc->ask);
}

/* ---- what can go wrong ---- */

void file_call_disk_full(struct file_call *fc, const char *why) {
    struct problem p;
    file_problem_disk_full(&p, why);
    tell(fc, &p);
}

void file_call_bad_path(struct file_call *fc, const char *why) {
    struct problem p;
    file_problem_bad_path(&p, fc->path, why);
    tell(fc, &p);
}

void file_call_fail(struct file_call *fc, int errnum, const char *why) {
    struct problem p;
    file_problem(&p, errnum, fc->writes, why);
    if (p.status == 500)
        log_error("request failed id=%s errno=%d error=%s", fc->call->who.request, errnum,
                  log_text(why));
    tell(fc, &p);
}

/* ---- content ---- */

bool file_call_fits(struct file_call *fc, uint64_t bytes) {
    const struct live *l = file_call_live(fc);
    struct err e;
    if (!l)
        return false;
    if (files_fit(live_sandbox(l), bytes, &e) == 0)
        return true;
    tell_err(fc, &e);
    return false;
}

bool file_call_write(struct file_call *fc, int fd, const struct file_piece *p,
                     const char *no_room) {
    struct live *l = file_call_live(fc);
    struct err e;
    if (!l)
        return false;
    if (files_write(live_sandbox(l), fd, p, &e) == 0)
        return true;
    if (*e.kind)
        tell_err(fc, &e);
    else
        file_call_fail(fc, e.code, no_room);
    return false;
}

/* ---- parameters ---- */

bool file_call_bad_value(struct file_call *fc, const char *field, const char *allowed) {
    struct problem p = {.status = 422, .code = "bad_value", .remediation = "see /docs"};
    const char *value = call_query(fc->call, field);
    snprintf(p.text, sizeof p.text, "%s is \"%.60s\"; it may be %s", field, value ? value : "",
             allowed);
    tell(fc, &p);
    return false;
}

bool file_call_query_bool(struct file_call *fc, const char *name, bool *ret) {
    const char *text = call_query(fc->call, name);
    if (!text)
        return true;
    *ret = strcasecmp(text, "true") == 0 || strcmp(text, "1") == 0;
    return *ret || strcasecmp(text, "false") == 0 || strcmp(text, "0") == 0 ||
           file_call_bad_value(fc, name, "true or false");
}

bool file_call_query_u32(struct file_call *fc, const char *name, uint32_t min, uint32_t max,
                         uint32_t *ret) {
    const char *text = call_query(fc->call, name);
    const struct num_rule rule = {name, min, max};
    char allowed[60];
    struct err e;
    if (!text || num_u32(text, &rule, ret, &e) == 0)
        return true;
    snprintf(allowed, sizeof allowed, "a number from %u to %u", min, max);
    return file_call_bad_value(fc, name, allowed);
}

bool file_call_mode(struct file_call *fc, const char *text, uint32_t *ret) {
    if (!text)
        return true;
    size_t len = strlen(text);
    if (len < 3 || len > 4 || strspn(text, "01234567") != len || (len == 4 && text[0] != '0')) {
        struct problem p = {
            .status = 422, .code = "bad_value", .remediation = "leave it out, or say \"0644\""};
        snprintf(p.text, sizeof p.text,
                 "mode is \"%.60s\"; it may be three octal digits, with a 0 in front or not", text);
        tell(fc, &p);
        return false;
    }
    *ret = (uint32_t)strtoul(text, NULL, 8);
    return true;
}
