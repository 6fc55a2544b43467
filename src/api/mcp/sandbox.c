/* The tool sandbox: the sandboxes that MCP names looked at, interrupted, reset and ended; and what
 * runs in the background in one of them. None is made by it. */

#include "api/core/api_state.h"
#include "api/jobs/records.h"
#include "api/mcp/fresh.h"
#include "api/mcp/place.h"
#include "api/mcp/report.h"
#include "api/mcp/tools.h"
#include "base/clock.h"
#include "base/text.h"
#include "http/fields.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VARIABLES  50u
#define ANSWER_MAX (256u << 10) /* bytes that a kernel says of its variables */

static const char *const actions[] = {"info",      "list",   "output", "reset",
                                      "interrupt", "delete", NULL};
static const struct field fields[] = {
    {.name = "action",
     .type = FIELD_STRING,
     .flags = FIELD_REQUIRED,
     .words = actions,
     .help = "info: its state and variables; list: all sandboxes; output: of the background "
             "command id; reset: a fresh interpreter, files stay; interrupt: what runs (or the "
             "command id); delete: all of it, files too"},
    {.name = "name",
     .type = FIELD_STRING,
     .wrong = place_wrong,
     .help = "of the sandbox; the usual one unless given"},
    {.name = "id", .type = FIELD_STRING, .help = "of a background command"},
};
static const struct schema sandbox_tool_schema = {SCHEMA("SandboxTool", fields)};

/* ---- whom it means ---- */

static const char *name_meant(const struct mcp_call *c) {
    return field_str(mcp_args(c), "name", place_name(c));
}

/* NULL: the call has its answer. */
static struct live *live_meant(struct mcp_call *c) {
    struct live *l = place_find(c, name_meant(c));
    if (!l)
        mcp_answer_errorf(c, "there is no sandbox \"%s\" now: run_python makes it", name_meant(c));
    return l;
}

/* The call waits for an answer of the sandbox. */
struct box_call {
    struct mcp_call *call;
    char sandbox[ID_MAX];
    struct buf text; /* what is known by now */
};

static struct live *box_live(const struct box_call *x, struct err *e) {
    const struct caller *who = &mcp_who(x->call)->caller;
    return live_find(who->api->o.engine, who->tenant, x->sandbox, e);
}

static void box_call_free(void *state) {
    struct box_call *x = state;
    struct err e;
    struct live *l = box_live(x, &e);
    if (l) {
        kernel_unquery(l, x);
        live_release(l);
    }
    buf_done(&x->text);
    free(x);
}

static struct box_call *box_call_new(struct mcp_call *c, struct live *l) {
    struct box_call *x = xcalloc(1, sizeof *x);
    *x = (struct box_call){.call = c, .text = BUF_INIT};
    snprintf(x->sandbox, sizeof x->sandbox, "%s", live_id(l));
    live_hold(l);
    mcp_keep(c, x, box_call_free);
    mcp_on_cancel(c, mcp_answer);
    return x;
}

/* ---- info ---- */

static void add_member(struct buf *to, struct json_span of, const char *name, const char *before,
                       const char *after) {
    struct json_span v = json_member(of.at, of.len, name);
    if (v.at)
        buf_addf(to, "%s%.*s%s", before, (int)v.len, v.at, after);
}

static void add_mb(struct buf *to, struct json_span usage, const char *name, uint32_t most,
                   const char *what) {
    struct json_span v = json_member(usage.at, usage.len, name);
    char number[24] = "0";
    if (v.at)
        snprintf(number, sizeof number, "%.*s", (int)(v.len < 20 ? v.len : 20), v.at);
    buf_addf(to, "%s: %.1f of %u MB. ", what, strtod(number, NULL) / (1 << 20), most);
}

/* In how many minutes it ends by itself. */
static void add_life(struct buf *to, struct live *l, struct json_span whole) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    double left = (live_expires(l) - (double)now.tv_sec) / 60;
    buf_addf(to, "It ends in %.0f minutes", left > 0 ? left : 0);
    add_member(to, whole, "idle_seconds", ", or after ", " s without use");
    buf_adds(to, ". ");
}

static void add_state(struct buf *to, struct live *l, const char *name) {
    AUTO_BUF json = BUF_INIT;
    struct err e;
    live_json(l, &json);
    const struct json_span whole = {json.data, json.len};
    const struct json_span usage = json_member(json.data, json.len, "usage");
    const struct kernel *k = kernel_find(l, NULL, &e);
    const struct limits *most = live_limits(l);
    const char *network = live_network(l);
    buf_addf(to, "sandbox %s: %s, profile %s, Python %s. ", name,
             live_is_paused(l) ? "paused"
             : k               ? kernel_state(k)
                               : "ending",
             live_profile(l), live_python(l));
    add_mb(to, usage, "memory_bytes", most->memory_mb, "Memory");
    add_mb(to, usage, "disk_bytes", most->disk_mb, "Disk");
    buf_addf(to, "Network: %.300s. ", network);
    add_life(to, l, whole);
    add_member(to, whole, "executions", "Calls so far: ", ".");
}

static void add_commands(struct buf *to, struct live *l) {
    for (struct command *m = command_next(l, NULL); m; m = command_next(l, m)) {
        const char *line = command_asked(m)->shown;
        if (!command_runs(m))
            continue;
        buf_addf(to, "\nin the background: %s  ", command_id(m));
        text_add_plain(to, line, strlen(line) < 100 ? strlen(line) : 100);
    }
}

static void add_variables(struct buf *to, const json_t *o) {
    const json_t *v;
    size_t i;
    int64_t total = field_int(o, "total", 0);
    buf_addf(to, "\nvariables: %" PRId64, total);
    json_array_foreach(json_object_get(o, "variables"), i, v) {
        const char *words[] = {field_str(v, "name", ""), field_str(v, "type", ""),
                               field_str(v, "repr", "")};
        if (i == VARIABLES)
            break;
        buf_adds(to, "\n  ");
        text_add_plain(to, words[0], strlen(words[0]));
        buf_adds(to, ": ");
        text_add_plain(to, words[1], strlen(words[1]));
        buf_adds(to, " = ");
        text_add_plain(to, words[2], strlen(words[2]));
    }
    if (total > (int64_t)VARIABLES)
        buf_adds(to, "\n  ...");
}

/* SECURITY: the kernel is hostile; what it says may be anything. */
static void box_on_variables(void *arg, const char *json, size_t len, const struct err *why) {
    struct box_call *x = arg;
    json_auto_t *o = NULL;
    struct err e;
    if (!why && len <= ANSWER_MAX && json_read(json, len, JSON_DEPTH_MAX, &o, &e) == 0)
        add_variables(&x->text, o);
    else
        buf_adds(&x->text, why ? "\nvariables: not known while something runs"
                               : "\nvariables: they cannot be shown");
    mcp_text(x->call, x->text.data, x->text.len);
    mcp_answer(x->call);
}

static void do_info(struct mcp_call *c) {
    struct live *l = live_meant(c);
    struct err e;
    if (!l)
        return;
    struct box_call *x = box_call_new(c, l);
    struct kernel *k = live_is_paused(l) ? NULL : kernel_find(l, NULL, &e);
    char most[40];
    snprintf(most, sizeof most, "\"most\":%u", VARIABLES);
    add_state(&x->text, l, name_meant(c));
    add_commands(&x->text, l);
    err_user(&e, "sandbox_paused", "the sandbox is paused");
    if (!k || kernel_query(k, "variables", most, box_on_variables, x, &e) < 0)
        box_on_variables(x, NULL, 0, &e);
}

/* ---- list ---- */

static void do_list(struct mcp_call *c) {
    AUTO_BUF text = BUF_INIT;
    struct err e;
    for (struct live *l = place_next(c, NULL); l; l = place_next(c, l)) {
        const struct kernel *k = kernel_find(l, NULL, &e);
        buf_addf(&text, "%s%s  %s, profile %s", text.len ? "\n" : "", place_name_of(l),
                 live_is_paused(l) ? "paused"
                 : k               ? kernel_state(k)
                                   : "ending",
                 live_profile(l));
    }
    if (!text.len)
        buf_adds(&text, "there is none now: run_python makes one");
    mcp_text(c, text.data, text.len);
    mcp_answer(c);
}

/* ---- a command in the background ---- */

/* NULL: the call has its answer. */
static struct command *command_meant(struct mcp_call *c, struct live *l) {
    const char *id = field_str(mcp_args(c), "id", "");
    AUTO_BUF shown = BUF_INIT;
    struct err e;
    struct command *m = *id ? command_find(l, id, &e) : NULL;
    text_add_plain(&shown, id, strlen(id) < 60 ? strlen(id) : 60);
    if (!m && *id)
        mcp_answer_errorf(c,
                          "there is no background command %s in sandbox %s: action info lists "
                          "those that run",
                          shown.data, name_meant(c));
    else if (!m)
        mcp_answer_errorf(c, "id is missing: that of a background command, as run_shell told it");
    return m;
}

static void do_output(struct mcp_call *c) {
    const struct caller *who = &mcp_who(c)->caller; /* the call may be gone after the next line */
    struct live *l = live_meant(c);
    struct command *m = l ? command_meant(c, l) : NULL;
    const struct report r = REPORT_INIT;
    AUTO_BUF text = BUF_INIT;
    if (!m)
        return;
    struct record *rec = records_find(who->api->records, who->tenant, command_id(m));
    if (rec)
        report_said(&r, rec, REPORT_TEXT - 500, true, &text);
    else
        buf_adds(&text, "[its output is not kept any more]");
    buf_addf(&text, "%s[%s]", text.len ? "\n" : "", command_status(m));
    if (!command_runs(m)) {
        const struct command_end end = command_end(m);
        buf_addf(&text, " exit code %d", end.exit_code);
    }
    mcp_text(c, text.data, text.len);
    mcp_answer(c);
}

static void interrupt_command(struct mcp_call *c, struct live *l) {
    struct command *m = command_meant(c, l);
    struct err e;
    if (!m)
        return;
    if (!command_runs(m))
        mcp_textf(c, "%s has ended already", command_id(m));
    else if (command_signal(m, SIGKILL, &e) < 0) {
        place_fail(c, &e);
        return;
    } else
        mcp_textf(c, "%s is killed", command_id(m));
    mcp_answer(c);
}

/* ---- interrupt, reset, delete ---- */

static void do_box_interrupt(struct mcp_call *c) {
    struct live *l = live_meant(c);
    struct err e;
    if (!l)
        return;
    if (*field_str(mcp_args(c), "id", "")) {
        interrupt_command(c, l);
        return;
    }
    struct kernel *k = kernel_find(l, NULL, &e);
    if (!k) {
        place_fail(c, &e);
        return;
    }
    mcp_textf(
        c, kernel_interrupt(k) ? "interrupted: variables are kept" : "nothing runs in sandbox %s",
        name_meant(c));
    mcp_answer(c);
}

static void say_reset(struct mcp_call *c) {
    mcp_textf(c, "sandbox %s is reset: no variables, files are there", name_meant(c));
    mcp_answer(c);
}

static void do_reset(struct mcp_call *c) {
    struct live *l = live_meant(c);
    if (l)
        fresh_kernel(c, l, say_reset);
}

struct box_ending {
    struct mcp_call *call; /* NULL: it was taken back */
};

static void box_ending_leave(void *state) {
    struct box_ending *w = state;
    w->call = NULL;
}

static void box_on_ended(void *arg) {
    struct box_ending *w = arg;
    if (w->call) {
        mcp_textf(w->call, "sandbox %s is deleted, with its variables and files",
                  name_meant(w->call));
        mcp_answer(w->call);
    }
    free(w);
}

static void do_delete(struct mcp_call *c) {
    struct live *l = live_meant(c);
    if (!l)
        return;
    struct box_ending *w = xcalloc(1, sizeof *w);
    w->call = c;
    mcp_keep(c, w, box_ending_leave);
    mcp_on_cancel(c, mcp_answer);
    live_end(l, "it was deleted", box_on_ended, w);
}

/* In the order of `actions`. */
static mcp_handler *const handlers[] = {do_info,  do_list,          do_output,
                                        do_reset, do_box_interrupt, do_delete};

static void sandbox_call(struct mcp_call *c) {
    const char *action = field_str(mcp_args(c), "action", "");
    for (size_t i = 0; actions[i]; i++) {
        if (strcmp(action, actions[i]) == 0) {
            handlers[i](c);
            return;
        }
    }
}

const struct mcp_tool sandbox_tool = {
    .name = "sandbox",
    .title = "Look after sandboxes",
    .description =
        "Looks after the sandboxes of run_python and run_shell: info, list, reset, interrupt, "
        "delete; output of what runs in the background.",
    .takes = &sandbox_tool_schema,
    .hints = MCP_DESTRUCTIVE | MCP_CLOSED,
    .sets = MCP_CORE,
    .call = sandbox_call,
};
