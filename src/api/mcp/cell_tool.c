/* See cell_tool.h. The call follows the record of its cell, and its answer is made from that
 * (report.h).
 *
 * A call that is taken back interrupts its cell, as a client that leaves does; input() becomes a
 * question to the user where the client can ask, and otherwise reads the end of the file. */

#include "api/mcp/cell_tool.h"

#include "api/files/file_type.h"
#include "api/files/paths.h"
#include "api/jobs/cell_job.h"
#include "api/jobs/records.h"
#include "api/mcp/place.h"
#include "api/mcp/receipt.h"
#include "api/mcp/report.h"
#include "base/text.h"
#include "base/url.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cell_tool {
    struct mcp_call *call;
    struct cell_tool_options o;
    char sandbox[ID_MAX];
    struct cell_job *job; /* borrowed while it runs, else NULL */
    struct follower follower;
    struct report report;
    bool was_reset;
};

/* NULL: the call has its answer. */
static struct live *cell_tool_live(const struct cell_tool *x) {
    const struct caller *who = &mcp_who(x->call)->caller;
    struct err e;
    struct live *l = live_find(who->api->o.engine, who->tenant, x->sandbox, &e);
    if (!l)
        place_fail(x->call, &e);
    return l;
}

static void cell_tool_free(void *state) {
    struct cell_tool *x = state;
    const struct caller *who = &mcp_who(x->call)->caller;
    struct err e;
    struct live *l = live_find(who->api->o.engine, who->tenant, x->sandbox, &e);
    record_unfollow(&x->follower);
    if (l) {
        kernel_unwait(l, x);
        live_release(l);
    }
    report_done(&x->report);
    free(x);
}

static void cell_tool_on_cancel(struct mcp_call *c) {
    struct cell_tool *x = mcp_kept(c);
    if (x->job)
        cell_job_leave(x->job);
    x->job = NULL;
    mcp_answer(c);
}

/* ---- input() ---- */

static void cell_tool_told(struct mcp_call *c, const char *text) {
    const struct cell_tool *x = mcp_kept(c);
    const struct caller *who = &mcp_who(c)->caller;
    struct err e;
    struct live *l = live_find(who->api->o.engine, who->tenant, x->sandbox, &e);
    struct kernel *k = l ? kernel_find(l, NULL, &e) : NULL;
    json_auto_t *value = text ? json_string(text) : NULL;
    if (k && value) /* when it does not wait any more, the answer came too late */
        (void)kernel_stdin(k, value, &e);
    else if (k)
        (void)kernel_no_stdin(k, &e);
}

/* SECURITY: what the user is asked was written by a program. */
static void cell_tool_ask(struct cell_tool *x, const char *json, size_t len) {
    static const char before[] = "The program in the sandbox asks: ";
    json_auto_t *o = json_loadb(json, len, 0, NULL);
    const char *prompt = field_str(o, "prompt", "");
    size_t most = strlen(prompt) < 1000 ? strlen(prompt) : 1000;
    AUTO_BUF text = BUF_INIT;
    buf_adds(&text, before);
    text_add_plain(&text, prompt, most);
    mcp_ask_text(x->call, text.data, "input()", cell_tool_told);
}

/* ---- what it says ---- */

/* The last line of it is enough. */
void cell_tool_progress(struct mcp_call *c, const char *type, const char *json, size_t len) {
    static const size_t most = 1000;
    struct json_span text = json_member(json, len, "data");
    if ((strcmp(type, "stdout") != 0 && strcmp(type, "stderr") != 0) || text.len < 3)
        return;
    size_t inside = text.len - 2, from = 0;
    if (inside > most)
        from = json_inside_cut(text.at + 1, inside, inside - most);
    AUTO_BUF plain = BUF_INIT;
    json_unescape(&plain, text.at + 1 + from, inside - from);
    mcp_say(c, plain.data, plain.len);
}

static void cell_tool_on_event(struct follower *f, uint64_t number, const char *type,
                               const char *json, size_t len) {
    struct cell_tool *x = f->arg;
    if (!type) /* cell_tool_on_done comes */
        return;
    report_event(&x->report, number, type, json, len);
    cell_tool_progress(x->call, type, json, len);
    if (strcmp(type, "input") == 0)
        cell_tool_ask(x, json, len);
}

/* ---- the answer ---- */

struct linking {
    struct mcp_call *call;
    const char *place;
};

/* Caches and the like are nobody's result. */
static bool is_hidden(const char *path) {
    return *path == '.' || strstr(path, "/.") || strstr(path, "__pycache__") ||
           strstr(path, "site-packages/");
}

static void link_file(void *arg, const char *inside, size_t len) {
    const struct linking *k = arg;
    AUTO_BUF path = BUF_INIT, uri = BUF_INIT;
    json_unescape(&path, inside, len);
    if (is_hidden(path.data))
        return;
    buf_addf(&uri, "cloche://sandbox/%s/", k->place);
    paths_encode(path.data, &uri);
    mcp_link(k->call, &(struct mcp_link){.uri = uri.data,
                                         .name = path.data,
                                         .description = "made or changed by this call",
                                         .mime = file_type(path.data)});
}

static void link_image(const struct cell_tool *x, const char *id, const struct report_link *l) {
    AUTO_BUF uri = BUF_INIT;
    buf_addf(&uri, "cloche://execution/%s/image/%llu", id, (unsigned long long)l->number);
    mcp_link(x->call, &(struct mcp_link){.uri = uri.data,
                                         .name = "image",
                                         .description = "shown by this call",
                                         .mime = l->mime});
}

static void put_links(const struct cell_tool *x, const char *id) {
    struct linking k = {x->call, place_name(x->call)};
    for (unsigned i = 0; i < x->report.nlinks; i++)
        link_image(x, id, &x->report.links[i]);
    report_files(&x->report, REPORT_FILES, link_file, &k);
}

static void skip_file(void *arg, const char *inside, size_t len) {
    (void)arg, (void)inside, (void)len;
}

/* What is to be known besides, a line each. */
static void add_news(const struct cell_tool *x, struct buf *to) {
    struct json_span restarted = report_end(&x->report, "kernel_restarted");
    unsigned files = report_files(&x->report, 0, skip_file, NULL);
    const char *end = to->len ? "\n" : "";
    if (files > REPORT_FILES)
        buf_addf(to, "%s[%u files were made or changed: list_files shows them]", end, files);
    end = to->len ? "\n" : "";
    if (x->was_reset)
        buf_addf(to, "%s[reset: no variables yet; files are there]", end);
    else if (restarted.at && *restarted.at == 't')
        buf_addf(to,
                 "%s[the kernel was restarted since the last call: the variables of before are "
                 "gone, files are there]",
                 end);
    else
        place_news(x->call, to);
}

static void put_late(const struct cell_tool *x, const struct live *l, struct buf *to) {
    const struct config *g = mcp_who(x->call)->caller.api->config;
    uint32_t had = x->o.timeout_ms ? x->o.timeout_ms : l ? live_limits(l)->timeout_ms : 0;
    buf_addf(to,
             "[stopped after %.10g s: what it printed until then is above, and variables are "
             "kept. ",
             had / 1e3);
    if (had < g->maxima.timeout_ms)
        buf_addf(to, "Give it more time (timeout_s, at most %.10g), or do it in smaller steps]",
                 g->maxima.timeout_ms / 1e3);
    else
        buf_adds(to, "That is the most that a call may have: do it in smaller steps, or as a "
                     "script with run_shell and background]");
}

static void cell_tool_finish(struct cell_tool *x, struct record *rec) {
    struct mcp_call *c = x->call;
    const struct caller *who = &mcp_who(c)->caller;
    struct err e;
    const struct live *l = live_find(who->api->o.engine, who->tenant, x->sandbox, &e);
    AUTO_BUF late = BUF_INIT, text = BUF_INIT;
    put_late(x, l, &late);
    report_settle(&x->report, rec);
    struct report_told told = report_text(&x->report, rec,
                                          &(struct report_words){.text = REPORT_TEXT,
                                                                 .error = REPORT_ERROR,
                                                                 .keeps_figures = x->o.is_ipybox,
                                                                 .is_ipybox = x->o.is_ipybox,
                                                                 .late = late.data},
                                          &text);
    if (!x->o.is_ipybox)
        add_news(x, &text);
    if (text.len || x->o.is_ipybox || x->report.nimages == 0)
        mcp_text(c, text.data, text.len);
    for (unsigned i = 0; i < x->report.nimages; i++) {
        const struct report_image *m = &x->report.images[i];
        mcp_image(c, m->mime, m->base64.data, m->base64.len);
    }
    if (!x->o.is_ipybox)
        put_links(x, record_id(rec));
    if (told.cut)
        receipt_link(c, record_id(rec));
    receipt_put(c, &x->report, record_id(rec), x->sandbox);
    if (told.is_error)
        mcp_answer_error(c);
    else
        mcp_answer(c);
}

static void cell_tool_on_done(void *arg, struct record *rec, const struct err *why) {
    struct cell_tool *x = arg;
    (void)why; /* the record has it */
    x->job = NULL;
    cell_tool_finish(x, rec);
}

/* ---- the beginning ---- */

static void cell_tool_start(struct cell_tool *x, struct live *l) {
    const struct caller *who = &mcp_who(x->call)->caller;
    struct problem p = {0};
    json_auto_t *body = json_object();
    json_object_set(body, "code", (json_t *)x->o.code);
    json_object_set_new(body, "allow_stdin", json_boolean(mcp_can(x->call, "elicitation")));
    if (x->o.timeout_ms)
        json_object_set_new(body, "timeout_ms", json_integer(x->o.timeout_ms));
    const struct cell_job_options o = {
        .live = l, .body = body, .on_done = cell_tool_on_done, .arg = x};
    if (cell_job_start(who, &o, &x->job, &p) < 0) {
        place_problem(x->call, &p);
        return;
    }
    x->follower = (struct follower){.is_first = true, .fn = cell_tool_on_event, .arg = x};
    record_follow(cell_job_record(x->job), &x->follower);
}

static void cell_tool_on_fresh(void *arg, struct kernel *k, const struct err *why) {
    struct cell_tool *x = arg;
    struct live *l = why ? NULL : cell_tool_live(x);
    (void)k;
    x->was_reset = true;
    if (why)
        place_fail(x->call, why);
    else if (l)
        cell_tool_start(x, l);
}

void cell_tool_run(struct mcp_call *c, struct live *l, const struct cell_tool_options *o) {
    struct err e;
    struct cell_tool *x = xcalloc(1, sizeof *x);
    *x = (struct cell_tool){.call = c, .o = *o, .report = REPORT_INIT};
    snprintf(x->sandbox, sizeof x->sandbox, "%s", live_id(l));
    live_hold(l);
    mcp_keep(c, x, cell_tool_free);
    mcp_on_cancel(c, cell_tool_on_cancel);
    struct kernel *k = kernel_find(l, NULL, &e);
    if (!k)
        place_fail(c, &e);
    else if (o->reset)
        kernel_restart(k, cell_tool_on_fresh, x);
    else
        cell_tool_start(x, l);
}

bool cell_tool_timeout(struct mcp_call *c, const char *name, uint32_t *ret_ms) {
    const struct config *g = mcp_who(c)->caller.api->config;
    const json_t *given = json_object_get(mcp_args(c), name);
    double ms = json_number_value(given) * 1e3;
    *ret_ms = 0;
    if (!given || json_is_null(given))
        return true;
    if (!(ms >= 1) || (g->maxima.timeout_ms && ms > g->maxima.timeout_ms)) {
        mcp_answer_errorf(c, "%s is %.10g; it may be more than 0 and at most %.10g seconds", name,
                          ms / 1e3, g->maxima.timeout_ms / 1e3);
        return false;
    }
    *ret_ms = (uint32_t)ms;
    return true;
}
