/* The result of an execution: the object of the API, the exit status for a shell, and one line for
 * people. The fields of the Code Interpreter API come first. */

#include "engine/oneshot/result.h"

#include "base/json.h"
#include "engine/core/trees.h"
#include "engine/core/warnings.h"
#include "engine/oneshot/heard.h"
#include "engine/oneshot/internal.h"
#include "engine/said/told.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define TRUNCATED "\n...[truncated]"

static bool timed_out(const struct run *r) {
    return r->outcome.status == OUTCOME_TIMEOUT;
}

int run_exit_status(const struct run *r) {
    int code = r->outcome.exit_code;
    return timed_out(r) ? 124 : code < 0 ? 128 + SIGKILL : code;
}

static struct limits_met limits_met(const struct run *r) {
    struct limits_met m = outcome_limits_met(&r->outcome, &r->req.limits);
    m.ended = timed_out(r) || r->outcome.status == OUTCOME_MEMORY || r->end == END_CPU;
    m.results_cut = r->shown.cut;
    m.files_cut = m.files_cut && r->req.flags & RUN_FILES;
    return m;
}

void run_notes(const struct run *r, struct buf *to) {
    const struct limits_met m = limits_met(r);
    int sig = r->outcome.signal;
    if (!m.ended && r->end == END_SIGNAL)
        buf_adds(to, "killed on request\n");
    else if (!m.ended && r->end == END_EXIT && sig > 0)
        buf_addf(to, "killed by signal %d (%s)\n", sig, strsignal(sig));
    warnings_add(&m, to);
}

void run_why(const struct run *r, char *out, size_t cap) {
    AUTO_BUF notes = BUF_INIT;
    run_notes(r, &notes);
    bool ended =
        r->end != END_DONE && r->end != END_NONE && !(r->end == END_EXIT && r->outcome.signal <= 0);
    snprintf(out, cap, "%.*s", ended ? (int)strcspn(notes.data, "\n") : 0, notes.data);
}

struct blob *run_text(const struct run *r, int stream) {
    return r->out[stream == 1 ? 0 : 1].whole;
}

/* As the Code Interpreter API cuts: the first cap - 32 bytes and a mark. A cell's has no mark, nor
 * has that of one that is told as a cell is. */
static void end_text(struct output *o, bool mark) {
    if (mark && !o->whole && output_truncated(o)) {
        o->kept.len = o->kept.len > 32 ? o->kept.len - 32 : 0;
        buf_adds(&o->kept, TRUNCATED);
    }
    output_whole(o);
}

bool run_error(const struct run *r, struct buf *to) {
    if (!r->error_name || r->outcome.exit_code == 0)
        return false;
    told_error(r->error_name, r->error_value, r->traceback, r->ntraceback, to);
    return true;
}

static void put_error(struct jw *j, const struct run *r) {
    AUTO_BUF error = BUF_INIT;
    jw_key(j, "error");
    if (run_error(r, &error))
        jw_raw(j, error.data, error.len);
    else
        jw_null(j);
}

const struct buf *run_returned(const struct run *r) {
    return &r->returned;
}

struct receipt run_receipt(const struct run *r) {
    struct receipt t = outcome_receipt(&r->outcome, r->pool->config->name);
    t.timeout_ms = r->req.limits.timeout_ms;
    t.refused = r->end == END_DONE && r->how == DONE_REFUSED ? r->error_value : NULL;
    return t;
}

static void put_output(struct jw *j, struct run *r, bool told, struct rope *to) {
    for (int i = 0; i < 2; i++) {
        end_text(&r->out[i], !run_shows(r));
        if (told)
            rope_key_text(to, j, i == 0 ? "stdout" : "stderr", r->out[i].whole);
    }
}

/* What cells have, and programs only when they show something. */
static void put_shown(struct jw *j, struct run *r, bool told, struct rope *to) {
    if (run_shows(r))
        jw_key_bool(j, "results_truncated", r->shown.cut);
    jw_key_int(j, "execution_count", 1);
    if (told)
        shown_put(&r->shown, j, to);
}

static const struct field end_fields[] = {
    HAS("execution_count", FIELD_INT),
    HAS("results", FIELD_LIST, .items = FIELD_JSON, .help = "empty: only cells have some"),
    HAS_OR_NULL("text", FIELD_STRING),
    HAS_OR_NULL("error", OBJECT(exception_schema)),
    HAS_OR_NULL("kernel_id", FIELD_STRING),
    HAS("kernel_restarted", FIELD_BOOL),
};
const struct schema run_end_schema = {SCHEMA("ProgramEnd", end_fields), .with = &outcome_schema,
                                      .help = "what became of a program, without its output"};
static const struct field result_fields[] = {
    HAS("stdout", FIELD_STRING),
    HAS("stderr", FIELD_STRING),
};
const struct schema run_result_schema = {SCHEMA("ProgramResult", result_fields),
                                         .with = &run_end_schema,
                                         .help = "what became of a program"};

void run_result(struct run *r, const struct result_options *o, struct rope *to) {
    AUTO_BUF json = BUF_INIT;
    AUTO_BUF warnings = BUF_INIT;
    struct jw j = JW_INIT(&json);
    const struct limits_met m = limits_met(r);
    jw_object(&j);
    put_output(&j, r, !o->no_output, to);
    outcome_put_beginning(&j, &r->outcome, r->id,
                          &(struct file_ids){.of = o->file_id, .arg = o->arg});
    put_shown(&j, r, !(run_shows(r) && o->no_output), to);
    put_error(&j, r);
    jw_key_null(&j, "kernel_id");
    jw_key_bool(&j, "kernel_restarted", false);
    const char *profile = r->req.tree ? r->req.tree->name : r->pool->config->name;
    outcome_put_end(&j, &r->outcome, profile, r->warm);
    warnings_add(&m, &warnings);
    if (o->warnings)
        buf_add(&warnings, o->warnings->data, o->warnings->len);
    warnings_put(&j, &warnings);
    jw_object_end(&j);
    rope_add(to, &json);
}
