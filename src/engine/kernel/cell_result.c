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

#define SMALL 4096u /* bytes of an output that is not worth a piece */

struct receipt cell_receipt(const struct cell *c) {
    return outcome_receipt(&c->outcome, c->profile);
}

const struct outcome *cell_outcome(const struct cell *c) {
    return &c->outcome;
}

uint64_t cell_execution_count(const struct cell *c) {
    return c->execution_count;
}

/* A value, of which this part of `of` is the JSON; behind what `j` has written so far. */
static void put_part(struct jw *j, struct rope *to, struct blob *of, size_t from, size_t len) {
    bool small = len <= SMALL;
    jw_raw(j, of->bytes.data + from, small ? len : 0);
    if (small)
        return;
    rope_add(to, j->to);
    rope_add_part(to, of, from, len);
}

/* And the last expression's value, as text. */
static void put_results(struct jw *j, struct cell *c, struct rope *to) {
    struct blob *last = NULL;
    size_t at = 0, len = 0;
    jw_key(j, "results");
    jw_array(j);
    for (unsigned i = 0; i < c->noutputs; i++) {
        struct cell_output *o = &c->outputs[i];
        struct blob *shown = blob_take(&o->shown);
        put_part(j, to, shown, 0, shown->bytes.len);
        jw_key_bool(j, "is_main_result", o->is_main);
        jw_object_end(j);
        if (o->is_main) {
            blob_unref(last);
            last = blob_ref(shown);
            at = o->plain_at;
            len = o->plain_len;
        }
        blob_unref(shown);
    }
    jw_array_end(j);
    jw_key(j, "text");
    if (len)
        put_part(j, to, last, at, len);
    else
        jw_null(j);
    blob_unref(last);
}

static void put_beginning(struct jw *j, const struct cell *c) {
    static const struct file_ids none = {0};
    outcome_put_beginning(j, &c->outcome, c->id, &none);
    jw_key_bool(j, "results_truncated", c->outputs_cut || c->resumed);
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
    m.results_cut = c->outputs_cut;
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
    put_results(&j, c, to);
    put_end(&j, c);
    jw_object_end(&j);
    rope_add(to, &json);
}
