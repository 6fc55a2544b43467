/* The tool run_shell: a line for bash in a sandbox. What it prints comes in one stream, so that the
 * order is that of the program; the answer is made from the record of the command (report.h). */

#include "api/files/paths.h"
#include "api/jobs/command_job.h"
#include "api/jobs/records.h"
#include "api/mcp/about.h"
#include "api/mcp/cell_tool.h"
#include "api/mcp/place.h"
#include "api/mcp/receipt.h"
#include "api/mcp/tools.h"
#include "http/fields.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES 40000u /* of a message to the kernel's child */
#define WORKSPACE      "/workspace"

static const struct field fields[] = {
    {.name = "command",
     .type = FIELD_STRING,
     .flags = FIELD_REQUIRED,
     .help = "a line for bash, or several"},
    FIELD_OF_SANDBOX,
    {.name = "cwd",
     .type = FIELD_STRING,
     .fallback = "\"/workspace\"",
     .help = "where it runs: absolute, or from /workspace"},
    {.name = "timeout_s", .type = FIELD_REAL, .help = "seconds; then it is killed"},
    {.name = "background",
     .type = FIELD_BOOL,
     .fallback = "false",
     .help = "answer at once with its id; it goes on without a time limit"},
};
static const struct schema run_shell_schema = {SCHEMA("RunShell", fields)};

struct shell_call {
    struct mcp_call *call;
    struct command_job *job; /* borrowed while it runs, else NULL */
    char sandbox[ID_MAX], id[ID_MAX];
    uint32_t timeout_ms;
    struct follower follower;
    struct report report;
};

static void shell_call_free(void *state) {
    struct shell_call *x = state;
    record_unfollow(&x->follower);
    report_done(&x->report);
    free(x);
}

static void shell_call_on_cancel(struct mcp_call *c) {
    struct shell_call *x = mcp_kept(c);
    if (x->job)
        command_job_leave(x->job); /* it is killed, unless it is in the background */
    x->job = NULL;
    mcp_answer(c);
}

static void shell_call_on_event(struct follower *f, uint64_t number, const char *type,
                                const char *json, size_t len) {
    struct shell_call *x = f->arg;
    if (!type) /* shell_call_on_done comes */
        return;
    report_event(&x->report, number, type, json, len);
    cell_tool_progress(x->call, type, json, len);
}

/* ---- the answer ---- */

static bool shell_is(const struct shell_call *x, const char *status) {
    struct json_span is = report_end(&x->report, "status");
    return is.len == strlen(status) + 2 && memcmp(is.at + 1, status, is.len - 2) == 0;
}

/* The last line: how it ended. */
static void put_status(const struct shell_call *x, struct buf *to) {
    struct json_span code = report_end(&x->report, "exit_code");
    struct json_span why = report_end(&x->report, "problem");
    if (to->len)
        buf_addc(to, '\n');
    if (shell_is(x, "timeout"))
        buf_addf(to,
                 "[killed after %.10g s: what it printed until then is above. Give it more time "
                 "(timeout_s), or run it with background]",
                 x->timeout_ms / 1e3);
    else if (shell_is(x, "killed"))
        buf_addf(to, "[killed%s%.*s]", why.len > 2 ? ": " : "", why.len > 2 ? (int)why.len - 2 : 0,
                 why.len > 2 ? why.at + 1 : "");
    else
        buf_addf(to, "exit code %.*s", (int)code.len, code.at ? code.at : "");
}

static void shell_call_on_done(void *arg, struct rope *result) {
    struct shell_call *x = arg;
    struct mcp_call *c = x->call;
    struct record *rec = command_job_record(x->job);
    AUTO_BUF text = BUF_INIT;
    (void)result;
    x->job = NULL;
    bool is_error = shell_is(x, "timeout") || shell_is(x, "killed");
    bool cut = report_said(&x->report, rec, is_error ? REPORT_ERROR - 500 : REPORT_TEXT - 500, true,
                           &text);
    put_status(x, &text);
    place_news(c, &text);
    mcp_text(c, text.data, text.len);
    if (cut)
        receipt_link(c, x->id);
    receipt_put(c, &x->report, x->id, x->sandbox);
    if (is_error)
        mcp_answer_error(c);
    else
        mcp_answer(c);
}

/* It goes on, whatever becomes of the call. */
static void shell_call_on_start(void *arg, struct command *m) {
    struct shell_call *x = arg;
    struct mcp_call *c = x->call;
    (void)m;
    x->job = NULL;
    mcp_textf(c,
              "started in the background as %s. The tool `sandbox` shows what it has printed "
              "(action \"output\", id \"%s\") and ends it (action \"interrupt\", the same id).",
              x->id, x->id);
    receipt_put(c, &x->report, x->id, x->sandbox);
    mcp_answer(c);
}

/* ---- the beginning ---- */

static char *cwd_of(const json_t *args) {
    const char *cwd = field_str(args, "cwd", "");
    AUTO_BUF path = BUF_INIT;
    if (*cwd != '/')
        buf_adds(&path, *cwd ? WORKSPACE "/" : WORKSPACE);
    buf_adds(&path, cwd);
    return buf_take(&path);
}

/* stderr goes where stdout goes; whatever bash says of errors is as if it had been given the line
 * itself. */
static char **argv_of(const char *line) {
    static const char *const words[] = {"/bin/sh", "-c", "exec bash -c \"$1\" 2>&1", "sh"};
    char **to = xcalloc(6, sizeof *to);
    for (size_t i = 0; i < 4; i++)
        to[i] = xstrdup(words[i]);
    to[4] = xstrdup(line);
    return to;
}

static void shell_call_start(struct shell_call *x, struct live *l) {
    const json_t *args = mcp_args(x->call);
    const char *line = field_str(args, "command", "");
    bool background = field_bool(args, "background", false);
    struct command_request q = {.argv = argv_of(line),
                                .shown = xstrdup(line),
                                .cwd = cwd_of(args),
                                .timeout_ms = background ? 0 : x->timeout_ms};
    struct command_job *job;
    struct problem p = {0};
    const struct command_job_options o = {.live = l,
                                          .request = &q,
                                          .goes_on = background,
                                          .on_start = background ? shell_call_on_start : NULL,
                                          .on_done = shell_call_on_done,
                                          .arg = x};
    if (command_job_start(&mcp_who(x->call)->caller, &o, &job, &p) < 0) {
        command_request_done(&q);
        place_problem(x->call, &p);
        return;
    }
    x->job = job;
    snprintf(x->id, sizeof x->id, "%s", command_id(command_job_command(job)));
    x->follower = (struct follower){.is_first = true, .fn = shell_call_on_event, .arg = x};
    record_follow(command_job_record(job), &x->follower);
}

static void run_shell_at(struct mcp_call *c, struct live *l) {
    const char *line = field_str(mcp_args(c), "command", "");
    uint32_t timeout_ms;
    if (!cell_tool_timeout(c, "timeout_s", &timeout_ms))
        return;
    if (live_is_paused(l)) {
        mcp_answer_errorf(c, "the sandbox is paused: who paused it must resume it first");
        return;
    }
    if (strlen(line) > LINE_MAX_BYTES) {
        mcp_answer_errorf(c,
                          "command has %zu bytes, and at most %u are allowed: write a script "
                          "with write_file and run that",
                          strlen(line), LINE_MAX_BYTES);
        return;
    }
    struct shell_call *x = xcalloc(1, sizeof *x);
    *x = (struct shell_call){.call = c,
                             .timeout_ms = timeout_ms ? timeout_ms : live_limits(l)->timeout_ms,
                             .report = REPORT_INIT};
    snprintf(x->sandbox, sizeof x->sandbox, "%s", live_id(l));
    mcp_keep(c, x, shell_call_free);
    mcp_on_cancel(c, shell_call_on_cancel);
    shell_call_start(x, l);
}

static void run_shell_call(struct mcp_call *c) {
    place_use(c, run_shell_at);
}

const struct mcp_tool run_shell_tool = {
    .name = "run_shell",
    .title = "Run a shell command",
    .description =
        "Runs a bash command line in a sandbox: the one of run_python, with the same files in "
        "/workspace. Every call is a new shell: use `cd dir && …` or cwd. What it prints comes "
        "back, and its exit code in the last line. For servers and long work: background, which "
        "answers with an id at once.",
    .takes = &run_shell_schema,
    .hints = MCP_DESTRUCTIVE,
    .sets = MCP_CORE,
    .call = run_shell_call,
    .describe = about_run,
    .hints_for = about_hints,
};
