/* See oneshot.h. */

#include "api/jobs/oneshot.h"

#include "api/core/audit.h"
#include "api/core/body.h"
#include "api/core/quota.h"
#include "api/jobs/account.h"
#include "api/jobs/oneshot_request.h"
#include "api/jobs/records.h"
#include "api/jobs/request_fields.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/utf8_stream.h"
#include "engine/said/told.h"
#include "engine/store/store_copy.h"
#include "loop/copy.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FEW_FILES 8 /* small ones that are copied at once: init may answer quickly */
/* ---- an execution ---- */

struct kept_file {
    char *path;
    char id[STORE_ID_LEN + 1];
};

struct oneshot {
    struct run *run;
    struct oneshot_options o;
    struct record *record;
    struct caller who;
    struct audit_code code;
    bool left, goes_on;
    bool starting, failed;   /* run_new has not returned yet; it ended before that */
    struct err why;          /* then */
    struct kept_file *files; /* what the program made, as stored */
    unsigned nfiles, asked;
    struct store_copy *copying; /* one more, beside the loop; or NULL */
    char *copying_path;         /* owned */
    struct utf8_stream utf8[2];
    struct buf end;      /* the result without stdout and stderr, once there is one */
    struct buf warnings; /* on the request */
};

static void oneshot_free(struct oneshot *x) {
    for (unsigned i = 0; i < x->nfiles; i++)
        free(x->files[i].path);
    free(x->files);
    store_copy_leave(x->copying);
    free(x->copying_path);
    buf_done(&x->warnings);
    audit_code_done(&x->code);
    buf_done(&x->end);
    free(x);
}

/* They are asked for in the order in which they were kept. */
static const char *file_id(void *arg, const char *path) {
    struct oneshot *x = arg;
    for (unsigned i = 0; i < x->nfiles; i++) {
        const struct kept_file *f = &x->files[(x->asked + i) % x->nfiles];
        if (strcmp(f->path, path) != 0)
            continue;
        x->asked += i + 1;
        return f->id;
    }
    return NULL;
}

const char *oneshot_id(const struct oneshot *x) {
    return run_id(x->run);
}

const struct run *oneshot_run(const struct oneshot *x) {
    return x->run;
}

static void make_result(struct oneshot *x, bool no_output, struct rope *to) {
    const struct result_options o = {
        .no_output = no_output, .file_id = file_id, .arg = x, .warnings = &x->warnings};
    run_result(x->run, &o, to);
}

void oneshot_result(const struct oneshot *x, struct rope *to) {
    rope_add_rope(to, record_result(x->record));
}

const struct buf *oneshot_end(const struct oneshot *x) {
    return &x->end;
}

void oneshot_hold(struct oneshot *x, bool hold) {
    run_hold(x->run, hold);
}

void oneshot_stdin(struct oneshot *x, const void *data, size_t len) {
    run_stdin(x->run, data, len);
}

size_t oneshot_stdin_backlog(const struct oneshot *x) {
    return run_stdin_backlog(x->run);
}

void oneshot_signal(struct oneshot *x, int sig) {
    run_signal(x->run, sig);
}

/* Made when it is first needed: the engine may start a program before run_new returns. */
static struct record *record_of(struct oneshot *x) {
    if (!x->record)
        x->record = record_new(x->who.api->records, run_id(x->run), x->who.tenant);
    return x->record;
}

uint64_t oneshot_last(const struct oneshot *x) {
    return record_last(x->record);
}

struct record *oneshot_record(struct oneshot *x) {
    return x->record;
}

static void oneshot_on_hold(void *arg, bool hold) {
    oneshot_hold(arg, hold);
}

static void oneshot_on_leave(void *arg) {
    oneshot_leave(arg);
}

struct events_source oneshot_source(struct oneshot *x) {
    return (struct events_source){.arg = x, .hold = oneshot_on_hold, .leave = oneshot_on_leave};
}

/* ---- from the engine ---- */

static void emit(struct oneshot *x, int stream, const struct buf *text) {
    AUTO_BUF json = BUF_INIT;
    if (text->len == 0)
        return;
    utf8_stream_json(text, &json);
    uint64_t number =
        record_event(record_of(x), stream == 1 ? "stdout" : "stderr", json.data, json.len);
    if (x->o.on_output && !x->left)
        x->o.on_output(x->o.arg, stream, number, text->data, text->len);
}

/* Characters are passed on whole, so that each event is text by itself. */
static void oneshot_on_output(void *arg, int stream, const void *data, size_t len) {
    struct oneshot *x = arg;
    AUTO_BUF text = BUF_INIT;
    utf8_stream_add(&x->utf8[stream == 1 ? 0 : 1], data, len, &text);
    emit(x, stream, &text);
}

static void oneshot_on_start(void *arg, struct run *r) {
    struct oneshot *x = arg;
    AUTO_BUF json = BUF_INIT;
    told_start(run_id(r), NULL, false, &json);
    uint64_t number = record_event(record_of(x), "start", json.data, json.len);
    if (x->o.on_start && !x->left)
        x->o.on_start(x->o.arg, number, run_id(r));
}

static void oneshot_on_event(void *arg, const char *type, const struct buf *json) {
    record_event(record_of(arg), type, json->data, json->len);
}

static void oneshot_on_stdin(void *arg, size_t taken) {
    struct oneshot *x = arg;
    (void)taken;
    if (x->o.on_stdin && !x->left)
        x->o.on_stdin(x->o.arg);
}

static void keep_file(struct oneshot *x, const char *path, const struct store_entry *entry,
                      const struct err *why) {
    if (why) {
        log_warn("file not kept request=%s why=%s", x->who.request, log_text(why->text));
        return;
    }
    x->files = xrealloc(x->files, (x->nfiles + 1) * sizeof *x->files);
    struct kept_file *f = &x->files[x->nfiles++];
    f->path = xstrdup(path);
    memcpy(f->id, entry->id, sizeof f->id);
}

static void oneshot_on_copied(void *arg, const struct store_entry *entry, const struct err *why) {
    struct oneshot *x = arg;
    AUTO_FREE char *path = x->copying_path;
    x->copying_path = NULL;
    x->copying = NULL;
    keep_file(x, path, entry, why);
    run_next_file(x->run);
}

static bool oneshot_on_file(void *arg, const char *path, uint64_t size, int *fd) {
    struct oneshot *x = arg;
    struct store *s = x->who.api->o.store;
    struct store_entry entry = {0};
    struct err e;
    const struct store_copy_request q = {.tenant = x->who.tenant,
                                         .name = path,
                                         .fd = fd,
                                         .size = size,
                                         .done = oneshot_on_copied,
                                         .arg = x};
    bool large = size > COPY_SMALL || x->nfiles >= FEW_FILES;
    int r = large ? store_copy_begin(s, x->who.api->o.engine->crew, &q, &x->copying, &e)
                  : store_copy(s, &q, &entry, &e);
    if (r == 0 && large) {
        x->copying_path = xstrdup(path);
        return true;
    }
    keep_file(x, path, &entry, r < 0 ? &e : NULL);
    store_entry_done(&entry);
    return false;
}

/* `why`: see account_execution. */
static void account(const struct oneshot *x, const char *why) {
    struct receipt t = run_receipt(x->run);
    account_execution(&x->who, run_id(x->run), &x->code, &t, why);
}

/* In the words of live cells `error` is the program's. */
static const char *failed(const struct oneshot *x) {
    return x->o.shows ? "failed" : "error";
}

/* The end is told without what was told before it. */
static void record_result_of(struct oneshot *x) {
    AUTO_BUF error = BUF_INIT;
    AUTO_ROPE result = ROPE_INIT;
    AUTO_ROPE end = ROPE_INIT;
    if (x->o.shows && run_error(x->run, &error))
        record_event(record_of(x), "error", error.data, error.len);
    make_result(x, true, &end);
    rope_read(&end, SIZE_MAX / 2, &x->end);
    record_event(record_of(x), "end", x->end.data, x->end.len);
    make_result(x, false, &result);
    record_end_with(record_of(x), &result);
}

static void end_record(struct oneshot *x, const struct err *why) {
    AUTO_BUF json = BUF_INIT;
    if (!why) {
        record_result_of(x);
        return;
    }
    struct problem p = problem_of(why);
    problem_json(&p, &json);
    record_event(record_of(x), failed(x), json.data, json.len);
    record_end(record_of(x), json.data);
}

static void oneshot_on_done(void *arg, struct run *r, const struct err *why) {
    struct oneshot *x = arg;
    (void)r;
    for (int s = 0; s < 2; s++) {
        AUTO_BUF text = BUF_INIT;
        utf8_stream_end(&x->utf8[s], &text);
        emit(x, s + 1, &text);
    }
    account(x, why ? why->kind : NULL);
    end_record(x, why);
    if (x->starting) {
        x->failed = true;
        if (why)
            x->why = *why;
        return;
    }
    if (!x->left && x->o.on_done)
        x->o.on_done(x->o.arg, x, why);
    oneshot_free(x);
}

void oneshot_leave(struct oneshot *x) {
    x->left = true;
    if (x->goes_on) {
        run_hold(x->run, false);
        if (x->o.on_stdin)
            run_stdin(x->run, NULL, 0); /* nobody will say more */
        return;
    }
    static const char json[] = "{\"error\":{\"code\":\"client_gone\",\"message\":\"the client went "
                               "away\",\"remediation\":\"run it again, or set on_disconnect to "
                               "continue\",\"retryable\":true}}";
    account(x, "interrupted");
    run_cancel(x->run);
    record_event(record_of(x), failed(x), json, sizeof json - 1);
    record_end(record_of(x), json);
    oneshot_free(x);
}

/* ---- from the request ---- */

static struct oneshot *oneshot_new(const struct caller *who, const struct oneshot_options *o) {
    struct oneshot *x = xcalloc(1, sizeof *x);
    bool keeps_code = strcmp(who->api->config->http.audit_code, "on") == 0;
    x->who = *who;
    x->o = *o;
    x->o.body = NULL;
    x->o.large = NULL;
    x->end = (struct buf)BUF_INIT;
    x->warnings = (struct buf)BUF_INIT;
    if (!o->shows)
        fields_unknown(&execute_schema, o->body, &x->warnings);
    x->goes_on =
        o->goes_on || strcmp(field_str(o->body, "on_disconnect", "interrupt"), "continue") == 0;
    body_audit(o->large, json_object_get(o->body, "code"), keeps_code, &x->code);
    return x;
}

int oneshot_start(const struct caller *who, const struct oneshot_options *o, struct oneshot **ret,
                  struct problem *p) {
    struct run_request q;
    struct err e;
    if (oneshot_read_request(who, o, &q, p) < 0 || quota_may_run(who, p) < 0) {
        run_request_done(&q);
        return -1;
    }
    struct oneshot *x = oneshot_new(who, o);
    const struct run_callbacks run_cb = {.arg = x,
                                         .on_start = oneshot_on_start,
                                         .on_output = oneshot_on_output,
                                         .on_event = oneshot_on_event,
                                         .on_stdin = oneshot_on_stdin,
                                         .on_file = oneshot_on_file,
                                         .on_done = oneshot_on_done};
    if (q.network)
        buf_adds(&x->warnings, q.network->warnings.data);
    x->starting = true;
    int r = run_new(who->api->o.engine, &q, &run_cb, &x->run, &e);
    x->starting = false;
    run_request_done(&q); /* empty when it was taken */
    if (r < 0 || x->failed) {
        *p = problem_of(r < 0 ? &e : &x->why);
        oneshot_free(x);
        return -1;
    }
    record_of(x);
    *ret = x;
    json_t *in = json_object_get(o->body, "stdin");
    if (json_is_string(in) && json_string_length(in)) {
        run_stdin_text(x->run, in);
        if (!o->on_stdin)
            run_stdin(x->run, NULL, 0);
    }
    return 0;
}

void oneshot_prepare(struct body *b, const json_t *request) {
    const json_t *code = json_object_get(request, "code");
    struct body_text *t = json_string_length(code) > RUN_MAX_CODE ? NULL : body_add_text(b, code);
    if (t) {
        body_text_hash(t);
        body_text_seal(t, json_string_value(code), json_string_length(code));
    }
    inputs_prepare(b, request);
}
