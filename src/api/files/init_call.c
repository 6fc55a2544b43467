/* See box.h. */

#include "api/files/init_call.h"

#include "api/files/paths.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/num.h"
#include "wire/entry.h"
#include "wire/wire.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define RECORDS_MAX (8u << 20) /* more than init ever tells at once */

static void tell(struct box *b, const struct problem *p) {
    if (b->begun) {
        log_warn("reply cut id=%s why=%s", b->call->id, p->code);
        http_abort(b->call->req);
    } else {
        call_problem(b->call, p);
    }
}

static void tell_err(struct box *b, const struct err *e) {
    struct problem p = problem_of(e);
    if (p.status == 500)
        log_error("request failed id=%s error=%s", b->call->id, log_text(e->text));
    tell(b, &p);
}

static struct live *look_up(const struct box *b, struct err *e) {
    struct call *c = b->call;
    return live_find(c->api->o.engine, c->tenant, b->id, e);
}

struct live *box_live(struct box *b) {
    struct err e;
    struct live *l = look_up(b, &e);
    if (!l)
        tell_err(b, &e);
    return l;
}

static void done(void *state) {
    struct box *b = state;
    struct err e;
    live_unwatch(&b->watcher);
    struct live *l = b->held ? look_up(b, &e) : NULL;
    if (l && b->waiting)
        live_unask(l, b);
    if (l)
        live_release(l);
    if (b->on_done)
        b->on_done(b);
    free(b->path);
    free(b->id);
    free(b);
}

void box_leave(struct box *b) {
    b->call->state = NULL;
    b->call->state_done = NULL;
    done(b);
}

/* A file of a sandbox that has ended takes memory for as long as somebody reads or writes it, and
 * who deletes the sandbox waits for that. Who waits for an answer, or still sends, gets one. */
static void on_end(struct live_watcher *w, const struct err *why) {
    struct box *b = w->arg;
    if (b->waiting)
        return;
    if (b->begun) {
        http_abort(b->call->req);
    } else if (b->on_gone) {
        b->on_gone(b);
        tell_err(b, why);
    }
}

void *box_new_in(struct call *c, const char *id, const char *path, size_t size,
                 void (*on_done)(struct box *b)) {
    struct box *b = xcalloc(1, size);
    b->call = c;
    b->id = xstrdup(id);
    b->path = xstrdup(path);
    b->writes = strcmp(http_method(c->req), "PUT") == 0;
    c->state = b;
    c->state_done = done;
    struct live *l = box_live(b);
    if (!l)
        return NULL;
    b->watcher = (struct live_watcher){.on_end = on_end, .arg = b};
    live_watch(l, &b->watcher);
    const char *wrong = paths_normal(b->path);
    if (!wrong && strlen(b->path) > ENTRY_PATH_MAX)
        wrong = "File paths have at most 4095 bytes.";
    if (wrong) {
        box_bad_path(b, wrong);
        return NULL;
    }
    b->on_done = on_done;
    b->held = true;
    live_hold(l);
    return b;
}

void *box_new(struct call *c, size_t size, void (*on_done)(struct box *b)) {
    return box_new_in(c, c->params[0], c->params[1], size, on_done);
}

/* ---- questions ---- */

static void on_answer(void *arg, struct wire_in *in) {
    struct box *b = arg;
    b->waiting = false;
    if (!in) {
        b->held = false;
        if (box_live(b)) /* it is still known: it is about to go */
            tell(b, &(struct problem){.status = 410,
                                      .code = "sandbox_gone",
                                      .message = "the sandbox is ending",
                                      .remediation = "make another one"});
        return;
    }
    if (in->type == WIRE_I_REPLY) {
        b->then(b, in);
        return;
    }
    int errnum = (int)wire_get_u32(in);
    if (!b->on_error || !b->on_error(b, errnum))
        box_fail(b, errnum, wire_get_str(in, 300));
}

void box_ask(struct box *b, const struct wire_out *o, box_fn *then) {
    struct live *l = box_live(b);
    if (!l)
        return;
    b->then = then;
    b->waiting = true; /* the answer could come at once */
    if (live_ask(l, o, on_answer, b))
        return;
    b->waiting = false;
    tell(b, &(struct problem){.status = 503,
                              .code = "sandbox_busy",
                              .message = "too many requests for this sandbox's files wait",
                              .remediation = "try again later",
                              .retryable = true,
                              .retry_after_s = 1});
}

int box_records(struct wire_in *in, struct buf *ret) {
    AUTO_FD fd = wire_take_fd(in);
    struct stat st;
    struct err e;
    if (fd < 0 || wire_end(in, &e) < 0 || fstat(fd, &st) < 0 || st.st_size > RECORDS_MAX)
        return -1;
    size_t len = (size_t)st.st_size;
    if (pread(fd, buf_reserve(ret, len), len, 0) != (ssize_t)len)
        return -1;
    buf_commit(ret, len);
    return 0;
}

/* ---- what can go wrong ---- */

static const struct {
    int errnum;
    struct problem problem;
} known[] = {
    {ENOENT, {404, "no_such_path", NULL, "GET …/files lists what there is", NULL, false, 0, ""}},
    {ENOTDIR, {404, "no_such_path", NULL, "GET …/files lists what there is", NULL, false, 0, ""}},
    {EEXIST,
     {409, "path_taken", NULL, "delete what is there, or choose another", NULL, false, 0, ""}},
    {EISDIR,
     {409, "path_taken", NULL, "delete the directory, or choose another", NULL, false, 0, ""}},
    {ENOTEMPTY, {409, "not_empty", NULL, "add ?recursive=true", NULL, false, 0, ""}},
    {EAGAIN,
     {409, "path_busy", NULL, "the program has a lease on it: try again", NULL, true, 0, ""}},
    {EBUSY,
     {409, "path_busy", NULL, "files are made there meanwhile: try again", NULL, true, 0, ""}},
    {ELOOP,
     {422, "bad_path", NULL, "it is a symbolic link: use what it leads to", NULL, false, 0, ""}},
    {EXDEV, {422, "bad_path", NULL, "stay in the workspace", NULL, false, 0, ""}},
    {EROFS,
     {403, "no_access", NULL, "this directory of the host can only be read", NULL, false, 0, ""}},
    {EACCES, {403, "no_access", NULL, "the host keeps it from sandboxes", NULL, false, 0, ""}},
    {EPERM, {403, "no_access", NULL, "the host keeps it from sandboxes", NULL, false, 0, ""}},
    {EINVAL, {422, "bad_path", NULL, "use another path", NULL, false, 0, ""}},
    {ENAMETOOLONG, {422, "bad_path", NULL, "names have at most 255 bytes", NULL, false, 0, ""}},
    {ENXIO, {422, "bad_path", NULL, "only regular files have content", NULL, false, 0, ""}},
};

void box_disk_full(struct box *b, const char *why) {
    struct problem p = {.status = 507,
                        .code = "disk_full",
                        .remediation = "delete files, or give the sandbox more disk "
                                       "(limits.disk_mb); it also has a number of files"};
    snprintf(p.text, sizeof p.text, "%s", why);
    tell(b, &p);
}

void box_bad_path(struct box *b, const char *why) {
    struct problem p = {
        .status = 422, .code = "bad_path", .remediation = "use a relative path without \"..\""};
    paths_wrong(why, b->path, p.text, sizeof p.text);
    tell(b, &p);
}

void box_fail(struct box *b, int errnum, const char *why) {
    if (errnum == ENOSPC || errnum == EDQUOT) {
        box_disk_full(b, why);
        return;
    }
    if (errnum == ENOTDIR && b->writes)
        errnum = EEXIST; /* a file is where a directory should be */
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (known[i].errnum != errnum)
            continue;
        struct problem p = known[i].problem;
        snprintf(p.text, sizeof p.text, "%s", why);
        tell(b, &p);
        return;
    }
    struct err e;
    err_set(&e, errnum, "init: %s", why);
    tell_err(b, &e);
}

/* ---- content ---- */

bool box_fits(struct box *b, uint64_t bytes) {
    const struct live *l = box_live(b);
    struct err e;
    if (!l)
        return false;
    if (live_fits(l, bytes, &e) == 0)
        return true;
    tell_err(b, &e);
    return false;
}

bool box_write(struct box *b, int fd, const struct live_piece *p, const char *no_room) {
    struct live *l = box_live(b);
    struct err e;
    if (!l)
        return false;
    if (live_write(l, fd, p, &e) == 0)
        return true;
    if (*e.kind)
        tell_err(b, &e);
    else
        box_fail(b, e.code, no_room);
    return false;
}

/* ---- parameters ---- */

bool box_bad_value(struct box *b, const char *field, const char *allowed) {
    struct problem p = {.status = 422, .code = "bad_value", .remediation = "see /docs"};
    const char *value = http_query(b->call->req, field);
    snprintf(p.text, sizeof p.text, "%s is \"%.60s\"; it may be %s", field, value ? value : "",
             allowed);
    tell(b, &p);
    return false;
}

bool box_query_bool(struct box *b, const char *name, bool *ret) {
    const char *text = http_query(b->call->req, name);
    if (!text)
        return true;
    *ret = strcasecmp(text, "true") == 0 || strcmp(text, "1") == 0;
    return *ret || strcasecmp(text, "false") == 0 || strcmp(text, "0") == 0 ||
           box_bad_value(b, name, "true or false");
}

bool box_query_u32(struct box *b, const char *name, uint32_t min, uint32_t max, uint32_t *ret) {
    const char *text = http_query(b->call->req, name);
    const struct num_rule rule = {name, min, max};
    char allowed[60];
    struct err e;
    if (!text || num_u32(text, &rule, ret, &e) == 0)
        return true;
    snprintf(allowed, sizeof allowed, "a number from %u to %u", min, max);
    return box_bad_value(b, name, allowed);
}

bool box_mode(struct box *b, const char *text, uint32_t *ret) {
    if (!text)
        return true;
    size_t len = strlen(text);
    if (len < 3 || len > 4 || strspn(text, "01234567") != len || (len == 4 && text[0] != '0')) {
        struct problem p = {
            .status = 422, .code = "bad_value", .remediation = "leave it out, or say \"0644\""};
        snprintf(p.text, sizeof p.text,
                 "mode is \"%.60s\"; it may be three octal digits, with a 0 in front or not", text);
        tell(b, &p);
        return false;
    }
    *ret = (uint32_t)strtoul(text, NULL, 8);
    return true;
}
