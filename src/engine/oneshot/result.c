/* The result of an execution: the object of the API, the exit status for a shell, and one line for
 * people. Contract 1's fields come first. */

#include "engine/oneshot/result.h"

#include "base/clock.h"
#include "base/json.h"
#include "engine/core/warnings.h"
#include "engine/oneshot/collect.h"
#include "engine/oneshot/internal.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define TRUNCATED "\n...[truncated]"

static bool out_of_memory(const struct run *r) {
    return r->end == END_MEMORY ||
           (r->usage.out_of_memory && r->end == END_EXIT && r->signal == SIGKILL);
}

static bool timed_out(const struct run *r) {
    return r->end == END_TIMEOUT;
}

static const char *status(const struct run *r) {
    if (timed_out(r))
        return "timeout";
    if (out_of_memory(r))
        return "memory_exceeded";
    if (r->end != END_DONE)
        return "killed";
    if (r->how == DONE_INTERRUPTED)
        return "interrupted";
    return r->exit_code == 0 ? "ok" : "error";
}

static bool killed_by_us(const struct run *r) {
    return r->end == END_MEMORY || r->end == END_CPU || r->end == END_SIGNAL;
}

static int exit_code(const struct run *r) {
    return killed_by_us(r) ? 128 + SIGKILL : r->exit_code;
}

static int signal_of(const struct run *r) {
    return killed_by_us(r) ? SIGKILL : r->signal;
}

int run_exit_status(const struct run *r) {
    int code = exit_code(r);
    return timed_out(r) ? 124 : code < 0 ? 128 + SIGKILL : code;
}

static struct limits_met limits_met(const struct run *r) {
    return (struct limits_met){
        .limit = r->limit,
        .of = r->req.limits,
        .ended = timed_out(r) || out_of_memory(r) || r->end == END_CPU,
        .cut = {output_truncated(&r->out[0]), output_truncated(&r->out[1])},
        .files_cut = r->files_cut && r->req.flags & RUN_FILES,
    };
}

void run_notes(const struct run *r, struct buf *to) {
    const struct limits_met m = limits_met(r);
    if (!m.ended && r->end == END_SIGNAL)
        buf_adds(to, "killed on request\n");
    else if (!m.ended && r->end == END_EXIT && r->signal > 0)
        buf_addf(to, "killed by signal %d (%s)\n", r->signal, strsignal(r->signal));
    warnings_add(&m, to);
}

void run_why(const struct run *r, char *out, size_t cap) {
    AUTO_BUF notes = BUF_INIT;
    run_notes(r, &notes);
    bool ended =
        r->end != END_DONE && r->end != END_NONE && !(r->end == END_EXIT && r->signal <= 0);
    snprintf(out, cap, "%.*s", ended ? (int)strcspn(notes.data, "\n") : 0, notes.data);
}

struct blob *run_text(const struct run *r, int stream) {
    return r->out[stream == 1 ? 0 : 1].whole;
}

/* Contract 1: the first cap - 32 bytes and a mark. */
static void end_text(struct output *o) {
    if (!o->whole && output_truncated(o)) {
        o->kept.len = o->kept.len > 32 ? o->kept.len - 32 : 0;
        buf_adds(&o->kept, TRUNCATED);
    }
    output_whole(o);
}

static void put_files(struct jw *j, const struct run *r, const struct result_options *o) {
    jw_key(j, "files");
    jw_array(j);
    for (unsigned i = 0; i < r->changes.n; i++) {
        if (!r->is_change[i])
            continue;
        jw_object(j);
        jw_key_str(j, "path", r->changes.items[i].path);
        jw_key_str(j, "kind", "file");
        jw_key_str(j, "file_id", o->file_id ? o->file_id(o->arg, r->changes.items[i].path) : NULL);
        jw_key_uint(j, "size_bytes", r->changes.items[i].size);
        jw_object_end(j);
    }
    jw_array_end(j);
}

static void put_error(struct jw *j, const struct run *r) {
    if (!r->error_name || r->exit_code == 0) {
        jw_key_null(j, "error");
        return;
    }
    jw_key(j, "error");
    jw_object(j);
    jw_key_str(j, "name", r->error_name);
    jw_key_str(j, "value", r->error_value);
    jw_key(j, "traceback");
    jw_array(j);
    for (unsigned i = 0; i < r->ntraceback; i++)
        jw_str(j, r->traceback[i]);
    jw_array_end(j);
    jw_object_end(j);
}

static double ms_between(uint64_t from_ns, uint64_t to_ns) {
    return from_ns && to_ns > from_ns ? (double)(to_ns - from_ns) / 1e6 : 0;
}

struct receipt run_receipt(const struct run *r) {
    return (struct receipt){
        .status = status(r),
        .profile = r->pool->config->name,
        .wall_ms = ms_between(r->started_ns, r->ended_ns ? r->ended_ns : now_ns()),
        .queue_ms = ms_between(r->born_ns, r->assigned_ns),
        .cpu_ms = (double)run_cpu_us(r) / 1e3,
        .memory_peak = r->usage.memory_peak,
        .timeout_ms = r->req.limits.timeout_ms,
        .refused = r->end == END_DONE && r->how == DONE_REFUSED ? r->error_value : NULL,
        .denied = &r->denied};
}

const struct buf *run_returned(const struct run *r) {
    return &r->returned;
}

static void put_end(struct jw *j, const struct run *r) {
    static const char *const limits[] = {NULL, "memory", "time", "cpu", "pids", "disk", "output"};
    struct receipt t = run_receipt(r);
    put_error(j, r);
    jw_key_null(j, "kernel_id");
    jw_key_bool(j, "kernel_restarted", false);
    jw_key_str(j, "limit_hit", limits[r->limit]);
    receipt_put(j, &t, r->usage.memory_peak, r->out[0].total + r->out[1].total);
    jw_key_str(j, "profile", r->pool->config->name);
    jw_key_bool(j, "warm", r->warm);
}

void run_result(struct run *r, const struct result_options *o, struct rope *to) {
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    int code = exit_code(r);
    jw_object(&j);
    for (int i = 0; i < 2; i++) {
        end_text(&r->out[i]);
        if (!o->no_output)
            rope_key_text(to, &j, i == 0 ? "stdout" : "stderr", r->out[i].whole);
    }
    if (timed_out(r) || code < 0)
        jw_key_null(&j, "exit_code");
    else
        jw_key_int(&j, "exit_code", code);
    jw_key_bool(&j, "timed_out", timed_out(r));
    jw_key_uint(&j, "duration_ms", (r->ended_ns - r->started_ns) / 1000000u);
    put_files(&j, r, o);
    jw_key_str(&j, "id", r->id);
    jw_key_str(&j, "status", status(r));
    if (signal_of(r) > 0)
        jw_key_int(&j, "signal", signal_of(r));
    else
        jw_key_null(&j, "signal");
    jw_key_bool(&j, "stdout_truncated", output_truncated(&r->out[0]));
    jw_key_bool(&j, "stderr_truncated", output_truncated(&r->out[1]));
    jw_key_bool(&j, "files_truncated", r->files_cut);
    jw_key_int(&j, "execution_count", 1);
    jw_key(&j, "results");
    jw_array(&j);
    jw_array_end(&j);
    jw_key_null(&j, "text");
    put_end(&j, r);
    AUTO_BUF warnings = BUF_INIT;
    const struct limits_met m = limits_met(r);
    warnings_add(&m, &warnings);
    if (o->warnings)
        buf_add(&warnings, o->warnings->data, o->warnings->len);
    warnings_put(&j, &warnings);
    jw_object_end(&j);
    rope_add(to, &json);
}
