/* `cloche sandbox exec` and `logs`: code in a kernel, commands, and what commands printed. */

#include "remote/sandbox/exec.h"

#include "base/fd.h"
#include "base/log.h"
#include "base/text.h"
#include "base/url.h"
#include "cli/input.h"
#include "cli/report.h"
#include "cli/screen.h"
#include "remote/cell.h"
#include "remote/net/limits_json.h"
#include "remote/notes.h"
#include "remote/sandbox/manage.h"
#include "remote/table.h"
#include "remote/value.h"

#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define STDIN_MAX (16u << 20)

/* ---- the request ---- */

/* A word is a file if one of that name is there or it ends like one; otherwise it is code. */
static int read_code(const struct sandbox_options *o, struct buf *to, struct err *e) {
    const char *word = o->code ? o->code : o->words.items[1];
    size_t len = strlen(word);
    bool is_file = !o->code && (strcmp(word, "-") == 0 || access(word, F_OK) == 0 ||
                                (len > 3 && strcmp(word + len - 3, ".py") == 0));
    if (is_file)
        return input_code(word, to, e);
    buf_adds(to, word);
    return 0;
}

static int make_cell(const struct sandbox_options *o, json_t *body, struct err *e) {
    AUTO_BUF code = BUF_INIT;
    if (read_code(o, &code, e) < 0 ||
        value_set_text(body, "code", "the code", code.data, code.len, e) < 0)
        return -1;
    if (o->kernel &&
        value_set_text(body, "kernel_id", "--kernel", o->kernel, strlen(o->kernel), e) < 0)
        return -1;
    /* Whoever waits for the whole result answers no questions. */
    json_object_set_new(body, "allow_stdin", json_boolean(!o->json));
    return 0;
}

static int add_stdin(json_t *body, struct err *e) {
    AUTO_BUF all = BUF_INIT;
    for (;;) {
        ssize_t n = read(STDIN_FILENO, buf_reserve(&all, 65536), 65536);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        buf_commit(&all, (size_t)n);
        if (all.len > STDIN_MAX)
            return err_user(e, "too_large", "--stdin: more than %u bytes", STDIN_MAX);
    }
    return value_set_text(body, "stdin", "--stdin", all.data, all.len, e);
}

static int make_command(const struct sandbox_options *o, json_t *body, struct err *e) {
    if (o->shell && value_set_text(body, "cmd", "--shell", o->shell, strlen(o->shell), e) < 0)
        return -1;
    json_t *argv = json_array();
    for (unsigned i = 0; i < o->command.n; i++) {
        json_t *word = json_string(o->command.items[i]);
        json_array_append_new(argv, word ? word : json_null());
        if (!word) {
            json_decref(argv);
            return err_user(e, "bad_text", "word %u of the command is not UTF-8 text", i + 1);
        }
    }
    if (o->command.n)
        json_object_set(body, "argv", argv);
    json_decref(argv);
    if (o->cwd && value_set_text(body, "cwd", "--cwd", o->cwd, strlen(o->cwd), e) < 0)
        return -1;
    if (o->background)
        json_object_set_new(body, "background", json_true());
    return o->uses_stdin ? add_stdin(body, e) : 0;
}

static int make_body(const struct sandbox_options *o, bool is_command, struct buf *to,
                     struct err *e) {
    json_auto_t *body = json_object();
    json_t *env = json_object();
    json_object_set_new(body, "env", env);
    if (sandbox_cmd_add_pairs(&o->env, env, e) < 0 ||
        (is_command ? make_command : make_cell)(o, body, e) < 0)
        return -1;
    limits_json(&o->limits, LIMIT_OF_EXECUTION, body);
    if (o->background && !o->limits.timeout_ms)
        json_object_set_new(body, "timeout_ms", json_integer(0));
    return value_dump(body, to, e);
}

/* ---- exec ---- */

/* The whole answer: --json, or a command in the background. */
static int ask_whole(struct sandbox_cmd *b, struct cell *c, const char *path,
                     const struct buf *body, struct err *e) {
    AUTO_REPLY reply = REMOTE_REPLY_INIT;
    const struct remote_call call = {
        .method = "POST", .path = path, .json = body, .upload = -1, .most = REMOTE_RESULT_MAX};
    json_error_t ignored;
    if (sandbox_cmd_call(b, &call, &reply, e) < 0)
        return -1;
    c->end = json_loadb(reply.body.data, reply.body.len, JSON_ALLOW_NUL, &ignored);
    if (!json_is_object(c->end))
        return err_user(e, "bad_reply", "the server answered with what is no result");
    if (!b->o.json)
        table_line(value_text(c->end, "id"));
    else if (isatty(STDOUT_FILENO))
        table_json(c->end);
    else if (fd_write_all(STDOUT_FILENO, reply.body.data, reply.body.len, e) < 0 ||
             fd_write_all(STDOUT_FILENO, "\n", 1, e) < 0)
        return err_user(e, "output_failed", "cannot write the result: %s", strerror(e->code));
    b->status = b->o.background ? 0 : cell_status(c);
    return 0;
}

static int follow_stream(struct sandbox_cmd *b, struct cell *c, const char *path,
                         const struct buf *body, struct err *e) {
    AUTO_REMOTE side = NULL;
    struct images images;
    if (sandbox_cmd_connect(b, &side, e) < 0)
        return -1;
    images_init(&images, b->o.images, b->o.image_dir ? b->o.image_dir : ".");
    c->side = side;
    c->images = &images;
    int rc = cell_run(c, body ? "POST" : "GET", path, body, e);
    if (rc == 0)
        b->status = cell_status(c);
    images_done(&images);
    c->side = NULL;
    c->images = NULL;
    return rc;
}

int sandbox_exec(struct sandbox_cmd *b, struct err *e) {
    bool is_command = b->o.shell || b->o.command.n;
    AUTO_BUF body = BUF_INIT;
    AUTO_BUF sandbox = BUF_INIT;
    AUTO_BUF path = BUF_INIT;
    sandbox_cmd_allow_signals(b, true); /* it may read stdin */
    int rc = make_body(&b->o, is_command, &body, e);
    sandbox_cmd_allow_signals(b, false);
    if (rc < 0 || sandbox_find(b, &sandbox, e) < 0 || sandbox_change_limits(b, sandbox.data, e) < 0)
        return -1;
    buf_addf(&path, "%s/%s", sandbox.data, is_command ? "commands" : "execute");
    struct cell c = CELL_INIT;
    c.cmd = b;
    c.sandbox = sandbox.data;
    c.kernel = b->o.kernel;
    c.is_command = is_command;
    rc = (b->o.json || b->o.background ? ask_whole : follow_stream)(b, &c, path.data, &body, e);
    cell_done(&c);
    return rc;
}

/* ---- logs ---- */

static void add_command(struct table *t, const json_t *command) {
    AUTO_BUF line = BUF_INIT;
    AUTO_BUF code = BUF_INIT;
    const json_t *cmd = json_object_get(command, "cmd"),
                 *exit = json_object_get(command, "exit_code");
    char when[32] = "?";
    struct tm tm;
    if (text_date(json_number_value(json_object_get(command, "created")), &tm))
        strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &tm);
    if (json_is_string(cmd))
        buf_adds(&line, json_string_value(cmd));
    for (size_t i = 0; i < json_array_size(cmd); i++)
        buf_addf(&line, "%s%s", i ? " " : "", json_string_value(json_array_get(cmd, i)));
    if (json_is_integer(exit))
        buf_addf(&code, "%" JSON_INTEGER_FORMAT, json_integer_value(exit));
    const char *row[] = {value_text(command, "id"), value_text(command, "status"), code.data, when,
                         line.data};
    table_add(t, row);
}

static int list_commands(struct sandbox_cmd *b, const char *path, struct err *e) {
    static const char *const head[] = {"id", "status", "exit", "started", "command"};
    json_auto_t *answer = NULL;
    const json_t *one;
    size_t i;
    if (sandbox_cmd_ask(b, "GET", path, NULL, &answer, e) < 0)
        return -1;
    if (b->o.json) {
        table_json(answer);
        return 0;
    }
    struct table t = {.columns = 5};
    table_add(&t, head);
    json_array_foreach(json_object_get(answer, "commands"), i, one) add_command(&t, one);
    table_print(&t);
    table_done(&t);
    return 0;
}

/* The id that begins with `word`, added to the path. */
static int find_command(struct sandbox_cmd *b, struct buf *path, const char *word, struct err *e) {
    json_auto_t *answer = NULL;
    const json_t *one;
    const char *found = NULL;
    unsigned n = 0;
    size_t i;
    char quoted[80];
    if (sandbox_cmd_ask(b, "GET", path->data, NULL, &answer, e) < 0)
        return -1;
    json_array_foreach(json_object_get(answer, "commands"), i, one) {
        const char *id = value_text(one, "id");
        if (*word && strncmp(id, word, strlen(word)) == 0) {
            found = id;
            n++;
        }
    }
    log_quote(word, quoted, sizeof quoted);
    if (!found)
        return err_user(e, "no_such_command", "there is no command with the id %s", quoted);
    if (n > 1)
        return err_user(e, "ambiguous_id", "%u commands have an id that begins with %s", n, quoted);
    buf_addc(path, '/');
    url_encode(path, found, "");
    return 0;
}

static int print_output(const json_t *command, struct err *e) {
    static const char *const names[] = {"stdout", "stderr"};
    for (int i = 0; i < 2; i++) {
        const json_t *text = json_object_get(command, names[i]);
        AUTO_BUF shown = BUF_INIT;
        struct screen screen = {0};
        if (json_is_string(text))
            screen_add(&screen, STDOUT_FILENO + i, &shown, json_string_value(text),
                       json_string_length(text));
        if (fd_write_all(STDOUT_FILENO + i, shown.data, shown.len, e) < 0)
            return e->code == EPIPE ? 0
                                    : err_user(e, "output_failed", "cannot write the output: %s",
                                               strerror(e->code));
    }
    AUTO_BUF notes = BUF_INIT;
    notes_add(command, false, &notes);
    report_notes(notes.data);
    return 0;
}

int sandbox_logs(struct sandbox_cmd *b, struct err *e) {
    AUTO_BUF sandbox = BUF_INIT;
    AUTO_BUF path = BUF_INIT;
    json_auto_t *command = NULL;
    if (sandbox_find(b, &sandbox, e) < 0)
        return -1;
    buf_addf(&path, "%s/commands", sandbox.data);
    if (b->o.words.n < 2)
        return list_commands(b, path.data, e);
    if (find_command(b, &path, b->o.words.items[1], e) < 0)
        return -1;
    if (b->o.follow) {
        struct cell c = CELL_INIT;
        c.cmd = b;
        c.sandbox = sandbox.data;
        c.is_command = true;
        c.only_looks = true;
        buf_adds(&path, "/events");
        int rc = follow_stream(b, &c, path.data, NULL, e);
        cell_done(&c);
        b->status = rc == 0 && b->status == 128 + SIGPIPE ? b->status : 0;
        return rc;
    }
    b->most = REMOTE_RESULT_MAX;
    if (sandbox_cmd_ask(b, "GET", path.data, NULL, &command, e) < 0)
        return -1;
    if (!b->o.json)
        return print_output(command, e);
    table_json(command);
    return 0;
}
