/* Commands as others see them: found, and told in JSON. */

#include "engine/live/command_view.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/rope.h"
#include "engine/core/warnings.h"
#include "engine/live/command.h"
#include "engine/process/live_state.h"

#include <string.h>

static const char *const status_words[] = {"running", "exited", "killed", "timeout"};

struct command *command_find(struct live *l, const char *id, struct err *e) {
    for (struct command *c = l->commands; c; c = c->next) {
        if (!c->deleted && strcmp(c->id, id) == 0)
            return c;
    }
    err_user(e, "no_such_command", "there is no command %.60s in this sandbox", id);
    return NULL;
}

struct command *command_next(struct live *l, const struct command *c) {
    struct command *next = c ? c->next : l->commands;
    while (next && next->deleted)
        next = next->next;
    return next;
}

const char *command_id(const struct command *c) {
    return c->id;
}

const struct command_request *command_asked(const struct command *c) {
    return &c->req;
}

const char *command_status(const struct command *c) {
    return status_words[c->status];
}

bool command_runs(const struct command *c) {
    return c->status == COMMAND_RUNNING;
}

bool command_has_terminal(const struct command *c) {
    return c->req.rows > 0;
}

bool command_stays(const struct command *c) {
    return c->req.stays;
}

void command_set_stays(struct command *c, bool stays) {
    c->req.stays = stays;
}

const struct denials *command_denied(const struct command *c) {
    return &c->outcome.denied;
}

struct command_end command_end(struct command *c) {
    output_whole(&c->out[0]);
    output_whole(&c->out[1]);
    return (struct command_end){
        .text = {c->out[0].whole, c->out[1].whole},
        .truncated = {output_truncated(&c->out[0]), output_truncated(&c->out[1])},
        .timed_out = c->status == COMMAND_TIMEOUT,
        .exit_code = c->outcome.exit_code,
        .duration_ms = outcome_duration_ms(&c->outcome)};
}

const struct buf *command_kept(const struct command *c) {
    return &c->out[0].kept;
}

static void put_warnings(struct jw *j, const struct command *c) {
    struct limits_met m = outcome_limits_met(&c->outcome, &c->live->req.limits);
    m.cut[0] = !c->req.rows && output_truncated(&c->out[0]); /* a terminal told all */
    m.cut[1] = output_truncated(&c->out[1]);
    m.crowded = output_starved(&c->out[0]) || output_starved(&c->out[1]);
    m.lost = c->cut;
    AUTO_BUF lines = BUF_INIT;
    m.of.timeout_ms = c->req.timeout_ms;
    m.of.output_bytes = c->req.output_bytes;
    warnings_add(&m, &lines);
    warnings_put(j, &lines);
}

static void put_output(struct jw *j, struct command *c, struct rope *to) {
    for (int i = 0; i < 2; i++) {
        AUTO_ROPE texts = ROPE_INIT;
        output_share(&c->out[i], &texts);
        rope_key_texts(to, j, i == 0 ? "stdout" : "stderr", &texts);
    }
}

/* A line may have tens of kilobytes, and six times as much as JSON. */
static void put_line(struct jw *j, const struct command *c, struct rope *to) {
    struct buf line = BUF_INIT;
    if (!to) {
        jw_key_str(j, "cmd", c->req.shown);
        return;
    }
    buf_adds(&line, c->req.shown);
    struct blob *b = blob_take(&line);
    rope_key_text(to, j, "cmd", b);
    blob_unref(b);
}

/* The beginning goes to `to` (or NULL), the end is left to the caller. */
static void put_command(struct jw *j, struct command *c, struct rope *to, bool with_output) {
    jw_object(j);
    jw_key_str(j, "id", c->id);
    jw_key_str(j, "status", command_status(c));
    put_line(j, c, to);
    jw_key_str(j, "cwd", c->req.cwd);
    jw_key_bool(j, "terminal", c->req.rows > 0);
    jw_key_real(j, "created", c->created);
    if (with_output)
        put_output(j, c, to);
    outcome_put_code(j, "exit_code", c->status == COMMAND_TIMEOUT ? -1 : c->outcome.exit_code);
    outcome_put_code(j, "signal", c->outcome.signal);
    jw_key_bool(j, "timed_out", c->status == COMMAND_TIMEOUT);
    jw_key_uint(j, "duration_ms", outcome_duration_ms(&c->outcome));
    jw_key_bool(j, "stdout_truncated", c->cut || output_truncated(&c->out[0]));
    jw_key_bool(j, "stderr_truncated", c->cut || output_truncated(&c->out[1]));
    denials_put(&c->outcome.denied, j);
    jw_key_str(j, "problem", c->why[0] ? c->why : NULL);
    put_warnings(j, c);
    jw_object_end(j);
}

static const struct field command_fields[] = {
    HAS("id", FIELD_STRING),
    HAS("status", FIELD_STRING, WORDS("running", "exited", "killed", "timeout")),
    HAS("cmd", FIELD_STRING),
    HAS("cwd", FIELD_STRING),
    HAS("terminal", FIELD_BOOL),
    HAS("created", FIELD_REAL, .help = "unix time"),
    HAS_OR_NULL("exit_code", FIELD_INT),
    HAS_OR_NULL("signal", FIELD_INT, .help = "the one that killed it"),
    HAS("timed_out", FIELD_BOOL),
    HAS("duration_ms", FIELD_INT),
    HAS("stdout_truncated", FIELD_BOOL),
    HAS("stderr_truncated", FIELD_BOOL),
    HAS("denied", LIST_OF(denial_schema)),
    HAS_OR_NULL("problem", FIELD_STRING, .help = "why it could not run"),
    WARNINGS_FIELD,
};
const struct schema command_view_schema = {SCHEMA("Command", command_fields)};
static const struct field output_fields[] = {
    HAS("stdout", FIELD_STRING),
    HAS("stderr", FIELD_STRING),
};
const struct schema command_result_schema = {SCHEMA("CommandResult", output_fields),
                                             .with = &command_view_schema};

void command_json(struct command *c, struct buf *to) {
    struct jw j = JW_INIT(to);
    put_command(&j, c, NULL, false);
}

void command_listed(struct command *c, struct buf *json, struct rope *to) {
    struct jw j = JW_INIT(json);
    put_command(&j, c, to, false);
}

void command_result(struct command *c, struct rope *to) {
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    put_command(&j, c, to, true);
    rope_add(to, &json);
}
