/* The result of an execution in a live kernel: the object of the API, whose fields are those of a
 * one-shot run (result.c). It may have tens of megabytes, so nothing large is copied: the reply is
 * made of the pieces when it is read. */

#include "engine/kernel/cell_result.h"

#include "base/rope.h"
#include "engine/core/warnings.h"
#include "engine/kernel/cell.h"
#include "engine/kernel/kernel.h"
#include "engine/process/live_state.h"

#include <string.h>

struct receipt cell_receipt(const struct cell *c) {
    return outcome_receipt(&c->outcome, c->profile);
}

const struct outcome *cell_outcome(const struct cell *c) {
    return &c->outcome;
}

uint64_t cell_execution_count(const struct cell *c) {
    return c->execution_count;
}

static void put_beginning(struct jw *j, const struct cell *c) {
    static const struct file_ids none = {0};
    outcome_put_beginning(j, &c->outcome, c->id, &none);
    jw_key_bool(j, "results_truncated", c->shown.cut || c->resumed);
    jw_key_uint(j, "execution_count", c->execution_count);
}

static void put_warnings(struct jw *j, const struct cell *c) {
    struct limits_met m = outcome_limits_met(&c->outcome, &c->kernel->live->req.limits);
    uint32_t own_mb = c->kernel->process.limits.memory_mb;
    AUTO_BUF lines = BUF_INIT;
    m.ended = c->outcome.status == OUTCOME_MEMORY;
    m.cut[0] = m.cut[0] && !c->resumed;
    m.cut[1] = m.cut[1] && !c->resumed;
    m.lost = c->resumed;
    m.results_cut = c->shown.cut;
    m.of.timeout_ms = c->req.limits.timeout_ms;
    m.of.cpu_seconds = c->req.limits.cpu_seconds;
    m.of.output_bytes = c->req.limits.output_bytes;
    m.of.memory_mb = own_mb ? own_mb : m.of.memory_mb;
    warnings_add(&m, &lines);
    warnings_put(j, &lines);
}

static void put_end(struct jw *j, const struct cell *c) {
    jw_key(j, "error");
    if (c->error)
        jw_raw(j, c->error, strlen(c->error));
    else
        jw_null(j);
    jw_key_str(j, "kernel_id", c->kernel_id);
    jw_key_bool(j, "kernel_restarted", c->kernel_restarted);
    outcome_put_end(j, &c->outcome, c->profile, true);
    put_warnings(j, c);
}

static const struct field end_fields[] = {
    HAS("results_truncated", FIELD_BOOL),
    HAS("execution_count", FIELD_INT),
    HAS_OR_NULL("error", OBJECT(exception_schema)),
    HAS_OR_NULL("kernel_id", FIELD_STRING),
    HAS("kernel_restarted", FIELD_BOOL, .help = "the first in a kernel whose forerunner died"),
};
const struct schema cell_end_schema = {SCHEMA("CellEnd", end_fields), .with = &outcome_schema,
                                       .help = "what became of a cell, without its output"};

static const struct field kept_fields[] = {
    HAS("data", MAP_OF(FIELD_JSON), .help = "by MIME type"),
    HAS("metadata", FIELD_OBJECT),
    HAS("is_main_result", FIELD_BOOL, .help = "the value of the last expression"),
};
static const struct schema kept_schema = {SCHEMA("CellOutput", kept_fields)};
static const struct field result_fields[] = {
    HAS("stdout", FIELD_STRING),
    HAS("stderr", FIELD_STRING),
    HAS("results", LIST_OF(kept_schema)),
    HAS_OR_NULL("text", FIELD_STRING, .help = "the last expression's value, as text"),
};
const struct schema cell_result_schema = {
    SCHEMA("CellResult", result_fields), .with = &cell_end_schema, .help = "what became of a cell"};

void cell_end_json(const struct cell *c, struct buf *to) {
    struct jw j = JW_INIT(to);
    jw_object(&j);
    put_beginning(&j, c);
    put_end(&j, c);
    jw_object_end(&j);
}

void cell_result(struct cell *c, struct rope *to) {
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    jw_object(&j);
    for (int i = 0; i < 2; i++) {
        struct blob *b = blob_take(&c->text[i]);
        rope_key_text(to, &j, i == 0 ? "stdout" : "stderr", b);
        blob_unref(b);
    }
    put_beginning(&j, c);
    shown_put(&c->shown, &j, to);
    put_end(&j, c);
    jw_object_end(&j);
    rope_add(to, &json);
}
