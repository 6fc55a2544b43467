/* `cloche shell`: a Python prompt in a sandbox. Lines come from the editor, or as they are where
 * stdin is no terminal; each whole block of them is a cell (cell.c) in the sandbox's kernel. */

#include "remote/shell/prompt.h"

#include "base/fd.h"
#include "base/log.h"
#include "base/url.h"
#include "cli/input.h"
#include "cli/report.h"
#include "remote/cell.h"
#include "remote/net/limits_json.h"
#include "remote/sandbox/manage.h"
#include "remote/shell/block.h"
#include "remote/shell/editor.h"
#include "remote/value.h"

#include <errno.h>
#include <jansson.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

struct prompt {
    struct sandbox_cmd *cmd; /* borrowed */
    struct remote *side;     /* owned: a second connection */
    struct buf sandbox;      /* its URL's path */
    struct editor *editor;   /* owned; NULL when stdin is no terminal */
    struct images images;
    struct buf block; /* the lines so far */
    struct buf id;    /* of a fresh sandbox; empty when it was there before */
    struct buf ahead; /* without a terminal: a line of the next block, read already */
    bool has_ahead;
};

/* ---- completion ---- */

static void add_matches(const json_t *answer, struct editor_matches *ret) {
    const json_t *match;
    size_t i;
    const json_t *list = json_object_get(answer, "matches");
    ret->items = xcalloc(json_array_size(list) + 1, sizeof *ret->items);
    json_array_foreach(list, i, match) {
        if (json_is_string(match))
            ret->items[ret->n++] = xstrdup(json_string_value(match));
    }
}

static size_t count_characters(const char *text, size_t len) {
    size_t n = 0;
    for (size_t i = 0; i < len; i++)
        n += ((unsigned char)text[i] & 0xc0) != 0x80;
    return n;
}

static json_t *ask_complete(struct prompt *p, const json_t *body) {
    AUTO_BUF path = BUF_INIT;
    AUTO_BUF text = BUF_INIT;
    AUTO_REPLY reply = REMOTE_REPLY_INIT;
    struct err ignored;
    json_error_t none;
    buf_addf(&path, "%s/complete", p->sandbox.data);
    const struct remote_call c = {
        .method = "POST", .path = path.data, .json = &text, .upload = -1, .gives_signs = true};
    if (value_dump(body, &text, &ignored) < 0 || remote_do(p->side, &c, &reply, &ignored) < 0 ||
        reply.status != 200)
        return NULL;
    return json_loadb(reply.body.data, reply.body.len, JSON_ALLOW_NUL, &none);
}

static bool find_matches(void *arg, const char *line, size_t len, struct editor_matches *ret) {
    struct prompt *p = arg;
    AUTO_BUF code = BUF_INIT;
    buf_add(&code, p->block.data, p->block.len);
    buf_add(&code, line, len);
    size_t cursor = count_characters(code.data, code.len);
    json_t *text = json_stringn(code.data, code.len);
    json_auto_t *body = json_object();
    if (!text)
        return false;
    json_object_set_new(body, "code", text);
    json_object_set_new(body, "cursor", json_integer((json_int_t)cursor));
    if (p->cmd->o.kernel)
        json_object_set_new(body, "kernel_id", json_string(p->cmd->o.kernel));
    json_auto_t *answer = ask_complete(p, body);
    json_int_t start = json_integer_value(json_object_get(answer, "start"));
    if (!answer || start < 0 || (size_t)start > cursor ||
        cursor - (size_t)start > count_characters(line, len))
        return false;
    ret->replaces = cursor - (size_t)start;
    add_matches(answer, ret);
    return true;
}

/* ---- lines ---- */

/* A byte at a time: what is behind the line is for an input() of its cell. */
static enum editor_got read_plain(struct prompt *p, struct buf *to, int *ret_signal) {
    for (;;) {
        struct pollfd f[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                             {.fd = p->cmd->signals, .events = POLLIN}};
        struct signalfd_siginfo info;
        if (poll(f, 2, -1) < 0 && errno != EINTR)
            return EDITOR_END;
        if (f[1].revents && read(p->cmd->signals, &info, sizeof info) == (ssize_t)sizeof info &&
            info.ssi_signo != SIGWINCH) {
            *ret_signal = (int)info.ssi_signo;
            return EDITOR_LEAVE;
        }
        if (!f[0].revents)
            continue;
        char byte;
        ssize_t n = read(STDIN_FILENO, &byte, 1);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n <= 0)
            return to->len ? EDITOR_LINE : EDITOR_END;
        if (byte == '\n')
            return EDITOR_LINE;
        buf_addc(to, byte);
    }
}

static bool is_blank(const char *text) {
    return text[strspn(text, " \t\r\n")] == '\0';
}

static enum editor_got read_line(struct prompt *p, struct buf *to, int *ret_signal) {
    if (p->has_ahead) {
        buf_add(to, p->ahead.data, p->ahead.len);
        buf_clear(&p->ahead);
        p->has_ahead = false;
        return EDITOR_LINE;
    }
    if (!p->editor)
        return read_plain(p, to, ret_signal);
    return editor_read(p->editor, p->block.len ? "... " : ">>> ", block_indent(p->block.data), to,
                       ret_signal);
}

/* Without a terminal an empty line ends no block, as it does not in a file; what comes next does.
 */
static bool is_next_block(const struct prompt *p, const char *line) {
    return !p->editor && p->block.len && block_is_compound(p->block.data) &&
           block_is_whole(p->block.data) && !is_blank(line) && !block_goes_on_with(line);
}

/* Several lines at once were pasted, or are from the history: they are all there is. */
static bool is_ready(const struct prompt *p, const char *line) {
    AUTO_BUF ended = BUF_INIT;
    if (!p->editor)
        return block_is_whole(p->block.data) && !block_is_compound(p->block.data);
    buf_add(&ended, p->block.data, p->block.len);
    if (strchr(line, '\n'))
        buf_addc(&ended, '\n');
    return block_is_whole(ended.data);
}

/* The next block to run into p->block. The end of the input ends a block as well. */
static enum editor_got read_block(struct prompt *p, int *ret_signal) {
    buf_clear(&p->block);
    for (;;) {
        AUTO_BUF line = BUF_INIT;
        enum editor_got got = read_line(p, &line, ret_signal);
        if (got == EDITOR_END && p->block.len)
            return EDITOR_LINE;
        if (got != EDITOR_LINE)
            return got;
        if (is_next_block(p, line.data)) {
            buf_add(&p->ahead, line.data, line.len);
            p->has_ahead = true;
            return EDITOR_LINE;
        }
        buf_add(&p->block, line.data, line.len);
        buf_addc(&p->block, '\n');
        if (is_blank(p->block.data))
            buf_clear(&p->block);
        else if (is_ready(p, line.data))
            return EDITOR_LINE;
    }
}

static bool wants_to_leave(const char *text) {
    static const char *const words[] = {"exit", "exit()", "quit", "quit()"};
    size_t len = strlen(text);
    while (len && strchr(" \t\n", text[len - 1]))
        len--;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (len == strlen(words[i]) && strncmp(text, words[i], len) == 0)
            return true;
    return false;
}

/* ---- cells ---- */

static int make_body(struct prompt *p, struct buf *to, struct err *e) {
    json_auto_t *body = json_object();
    const struct sandbox_options *o = &p->cmd->o;
    if (value_set_text(body, "code", "the code", p->block.data, p->block.len, e) < 0)
        return -1;
    if (o->kernel &&
        value_set_text(body, "kernel_id", "--kernel", o->kernel, strlen(o->kernel), e) < 0)
        return -1;
    json_object_set_new(body, "allow_stdin", json_true());
    limits_json(&o->limits, LIMIT_OF_EXECUTION, body);
    return value_dump(body, to, e);
}

static int run_cell(struct prompt *p, struct err *e) {
    AUTO_BUF body = BUF_INIT;
    AUTO_BUF path = BUF_INIT;
    struct cell c = CELL_INIT;
    c.cmd = p->cmd;
    c.side = p->side;
    c.sandbox = p->sandbox.data;
    c.kernel = p->cmd->o.kernel;
    c.images = &p->images;
    buf_addf(&path, "%s/execute", p->sandbox.data);
    if (make_body(p, &body, e) < 0)
        return -1;
    int rc = cell_run(&c, "POST", path.data, &body, e);
    if (rc == 0)
        p->cmd->status = cell_status(&c);
    cell_done(&c);
    return rc;
}

/* Whether there is a next prompt after this failure; what it was is said here then. */
static bool goes_on(struct prompt *p, const struct err *e) {
    const struct client_outcome *r = &p->cmd->refused;
    if (strcmp(e->kind, "interrupted") == 0 && p->cmd->signal == SIGINT) {
        p->cmd->signal = 0;
        report_say("left the cell before it ended; the server interrupts it");
        return true;
    }
    if (strcmp(e->kind, "bad_text") == 0) {
        report_say(e->text);
        return true;
    }
    if (strcmp(e->kind, "refused") != 0 || strcmp(r->kind.data, "sandbox_gone") == 0 ||
        strncmp(r->kind.data, "no_such_", 8) == 0)
        return false;
    (void)report_failure(
        &(struct failure){r->kind.data, r->message.data, r->remediation.data, r->retryable}, false);
    return true;
}

static int run_blocks(struct prompt *p, struct err *e) {
    for (;;) {
        int signal = 0;
        enum editor_got got = read_block(p, &signal);
        if (got == EDITOR_LEAVE) {
            p->cmd->signal = signal;
            return err_user(e, "interrupted", "interrupted");
        }
        if (got == EDITOR_LINE && p->editor)
            editor_remember(p->editor, p->block.data);
        if (got == EDITOR_END || (got == EDITOR_LINE && wants_to_leave(p->block.data)))
            return 0;
        if (got == EDITOR_LINE && run_cell(p, e) < 0 && !goes_on(p, e))
            return -1;
        if (!p->editor && p->cmd->status != 0)
            return 0; /* as a script ends */
    }
}

/* `cloche shell < FILE`: one program, as for Python itself. */
static int run_file(struct prompt *p, struct err *e) {
    if (input_code("-", &p->block, e) < 0)
        return -1;
    return is_blank(p->block.data) ? 0 : run_cell(p, e);
}

static bool stdin_is_file(void) {
    struct stat st;
    return fstat(STDIN_FILENO, &st) == 0 && S_ISREG(st.st_mode);
}

/* ---- start and end ---- */

/* $XDG_STATE_HOME/cloche/shell_history, with its directory made; false when there is no place. */
static bool find_history(struct buf *to) {
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    if (state && *state == '/')
        buf_adds(to, state);
    else if (home && *home == '/')
        buf_addf(to, "%s/.local/state", home);
    else
        return false;
    buf_adds(to, "/cloche");
    for (char *p = to->data + 1; (p = strchr(p, '/')); p++) {
        *p = '\0';
        (void)mkdir(to->data, 0700);
        *p = '/';
    }
    (void)mkdir(to->data, 0700); /* without it there is no history, and nothing else is lost */
    buf_adds(to, "/shell_history");
    return true;
}

static int start_editor(struct prompt *p, struct err *e) {
    AUTO_BUF history = BUF_INIT;
    const struct editor_completion completion = {p, find_matches};
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return 0;
    bool kept = find_history(&history);
    return editor_new(p->cmd->signals, &completion, kept ? history.data : NULL, &p->editor, e);
}

static void greet(const struct prompt *p, const json_t *made) {
    AUTO_BUF line = BUF_INIT;
    if (!p->editor)
        return;
    buf_addf(&line, "Python in %s", p->sandbox.data + strlen("/v1/sandboxes/"));
    if (made)
        buf_addf(&line, " (profile %s)", value_text(made, "profile"));
    buf_adds(&line, "; Ctrl-D leaves");
    report_say(line.data);
}

static int enter(struct prompt *p, struct err *e) {
    struct sandbox_cmd *b = p->cmd;
    json_auto_t *made = NULL;
    if (b->o.words.n) {
        if (sandbox_find(b, &p->sandbox, e) < 0)
            return -1;
    } else {
        if (sandbox_make(b, &made, e) < 0)
            return -1;
        buf_adds(&p->id, value_text(made, "id"));
        buf_adds(&p->sandbox, "/v1/sandboxes/");
        url_encode(&p->sandbox, p->id.data, "");
    }
    if (start_editor(p, e) < 0)
        return -1;
    greet(p, made);
    return 0;
}

/* A fresh sandbox goes with us. A signal that comes now does not keep it alive. */
static void leave(struct prompt *p) {
    AUTO_REMOTE r = NULL;
    AUTO_REPLY reply = REMOTE_REPLY_INIT;
    AUTO_BUF line = BUF_INIT;
    struct err ignored;
    struct sandbox_cmd quiet = *p->cmd;
    quiet.signals = -1;
    if (!p->id.len)
        return;
    if (p->cmd->o.keep) {
        buf_addf(&line, "the sandbox stays: %s", p->id.data);
        report_say(line.data);
        return;
    }
    const struct remote_call c = {
        .method = "DELETE", .path = p->sandbox.data, .upload = -1, .gives_signs = true};
    if (sandbox_cmd_connect(&quiet, &r, &ignored) == 0)
        (void)remote_do(r, &c, &reply, &ignored);
}

int sandbox_prompt(struct sandbox_cmd *b, struct err *e) {
    struct prompt p = {
        .cmd = b, .sandbox = BUF_INIT, .block = BUF_INIT, .id = BUF_INIT, .ahead = BUF_INIT};
    setlocale(LC_CTYPE, "C.UTF-8"); /* what we send and get is UTF-8, whatever the user's is */
    images_init(&p.images, b->o.images, b->o.image_dir);
    int rc = sandbox_cmd_connect(b, &p.side, e);
    if (rc == 0)
        rc = enter(&p, e);
    bool is_typed = p.editor != NULL;
    if (rc == 0)
        rc = stdin_is_file() ? run_file(&p, e) : run_blocks(&p, e);
    editor_free(p.editor); /* the terminal is as it was */
    leave(&p);
    if (is_typed)
        b->status = 0; /* cells that failed were seen */
    images_done(&p.images);
    remote_free(p.side);
    buf_done(&p.sandbox);
    buf_done(&p.block);
    buf_done(&p.id);
    buf_done(&p.ahead);
    return rc;
}
