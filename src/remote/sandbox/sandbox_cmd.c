/* See sandbox_cmd.h. */

#include "remote/sandbox/sandbox_cmd.h"

#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "cli/remote.h"
#include "cli/report.h"
#include "remote/sandbox/exec.h"
#include "remote/sandbox/files.h"
#include "remote/sandbox/life.h"
#include "remote/sandbox/ls.h"
#include "remote/sandbox/manage.h"
#include "remote/sandbox/ports.h"
#include "remote/sandbox/terminal.h"
#include "remote/shell/prompt.h"
#include "remote/value.h"

#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define SERVER      "http://127.0.0.1:8000"
#define ANSWERS_MAX (64u << 20)

static int (*const verbs[SANDBOX_VERBS_])(struct sandbox_cmd *b, struct err *e) = {
    [SANDBOX_CREATE] = sandbox_create,   [SANDBOX_LIST] = sandbox_list,
    [SANDBOX_SHOW] = sandbox_show,       [SANDBOX_DELETE] = sandbox_delete,
    [SANDBOX_EXEC] = sandbox_exec,       [SANDBOX_PUT] = sandbox_put,
    [SANDBOX_GET] = sandbox_get,         [SANDBOX_LS] = sandbox_ls,
    [SANDBOX_LOGS] = sandbox_logs,       [SANDBOX_INTERRUPT] = sandbox_interrupt,
    [SANDBOX_RESTART] = sandbox_restart, [SANDBOX_PAUSE] = sandbox_pause,
    [SANDBOX_RESUME] = sandbox_resume,   [SANDBOX_EXTEND] = sandbox_extend,
    [SANDBOX_NETWORK] = sandbox_network, [SANDBOX_TERMINAL] = sandbox_terminal,
    [SANDBOX_PORTS] = sandbox_ports,     [SANDBOX_LINK] = sandbox_link,
    [SANDBOX_PROMPT] = sandbox_prompt,
};

/* ---- calls ---- */

int sandbox_cmd_refused(struct sandbox_cmd *b, const struct remote_reply *reply, struct err *e) {
    if (reply->signal) {
        b->signal = reply->signal;
        return err_user(e, "interrupted", "interrupted");
    }
    remote_refused(reply, &b->refused);
    return err_user(e, "refused", "the server refused it");
}

int sandbox_cmd_call(struct sandbox_cmd *b, const struct remote_call *c, struct remote_reply *reply,
                     struct err *e) {
    if (remote_do(b->r, c, reply, e) < 0)
        return -1;
    if (reply->signal || (reply->status && reply->status / 100 != 2))
        return sandbox_cmd_refused(b, reply, e);
    return 0;
}

int sandbox_cmd_ask(struct sandbox_cmd *b, const char *method, const char *path, const json_t *body,
                    json_t **ret, struct err *e) {
    AUTO_BUF text = BUF_INIT;
    AUTO_REPLY reply = REMOTE_REPLY_INIT;
    if (body && value_dump(body, &text, e) < 0)
        return -1;
    /* One bound for all answers together: lists come in pages, as many as the server likes. */
    const struct remote_call c = {.method = method,
                                  .path = path,
                                  .json = body ? &text : NULL,
                                  .upload = -1,
                                  .most = (b->most ? b->most : ANSWERS_MAX) - b->answered};
    if (sandbox_cmd_call(b, &c, &reply, e) < 0)
        return -1;
    b->answered += reply.body.len;
    json_error_t ignored;
    *ret = json_loadb(reply.body.data, reply.body.len, JSON_ALLOW_NUL, &ignored);
    if (json_is_object(*ret))
        return 0;
    json_decref(*ret);
    *ret = NULL;
    return err_user(e, "bad_reply", "the server answered with what is no JSON object");
}

int sandbox_cmd_connect(const struct sandbox_cmd *b, struct remote **ret, struct err *e) {
    const char *server = remote_named(b->o.server);
    return remote_open(server ? server : SERVER, b->o.key_file, b->signals, ret, e);
}

/* ---- what requests are made of ---- */

int sandbox_cmd_add_pairs(const struct sandbox_words *pairs, json_t *to, struct err *e) {
    for (unsigned i = 0; i < pairs->n; i++) {
        const char *equals = strchr(pairs->items[i], '=');
        AUTO_FREE char *name = xstrndup(pairs->items[i], (size_t)(equals - pairs->items[i]));
        json_t *v = json_string(equals + 1);
        if (!name || !v || json_object_set_new(to, name, v) < 0) {
            char quoted[80];
            return err_user(e, "bad_text", "%s is not UTF-8 text",
                            log_quote(pairs->items[i], quoted, sizeof quoted));
        }
    }
    return 0;
}

/* ---- signals ---- */

void sandbox_cmd_allow_signals(const struct sandbox_cmd *b, bool allow) {
    sigprocmask(allow ? SIG_UNBLOCK : SIG_BLOCK, &b->taken, NULL);
}

int sandbox_cmd_check_signals(struct sandbox_cmd *b, struct err *e) {
    struct signalfd_siginfo info;
    if (read(b->signals, &info, sizeof info) != (ssize_t)sizeof info || info.ssi_signo == SIGWINCH)
        return 0;
    b->signal = (int)info.ssi_signo;
    return err_user(e, "interrupted", "interrupted");
}

/* ---- start and end ---- */

/* A signal that was ignored when we came (a job in the background) stays so. */
static int take_signals(struct sandbox_cmd *b, struct err *e) {
    static const int all[] = {SIGINT, SIGTERM, SIGHUP, SIGWINCH};
    bool is_terminal = b->o.verb == SANDBOX_TERMINAL || b->o.verb == SANDBOX_PROMPT;
    sigemptyset(&b->taken);
    for (size_t i = 0; i < (is_terminal ? 4 : 2); i++) {
        struct sigaction now;
        if (sigaction(all[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            sigaddset(&b->taken, all[i]);
    }
    sandbox_cmd_allow_signals(b, false);
    b->signals = signalfd(-1, &b->taken, SFD_CLOEXEC | SFD_NONBLOCK);
    return b->signals < 0 ? err_sys(e, "signalfd") : 0;
}

static int run_verb(struct sandbox_cmd *b, struct err *e) {
    if (take_signals(b, e) < 0 || sandbox_cmd_connect(b, &b->r, e) < 0)
        return -1;
    return verbs[b->o.verb](b, e);
}

/* The kinds of failure that only these verbs have. */
static int sandbox_cmd_fail(const struct sandbox_cmd *b, const struct err *e) {
    static const struct failure own[] = {
        {.kind = "no_such_sandbox", .remediation = "`cloche sandbox list` lists them"},
        {.kind = "no_such_command", .remediation = "`cloche sandbox logs ID` lists them"},
        {.kind = "ambiguous_id",
         .remediation = "write more of it, or the whole id; `cloche sandbox list` lists them"},
        {.kind = "bad_text", .remediation = "write it in UTF-8"},
        {.kind = "no_terminal", .remediation = "use `cloche sandbox exec`"},
    };
    const struct client_outcome *r = &b->refused;
    if (strcmp(e->kind, "refused") == 0)
        return report_failure(
            &(struct failure){r->kind.data, r->message.data, r->remediation.data, r->retryable},
            b->o.json);
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        if (strcmp(own[i].kind, e->kind) == 0) {
            struct failure f = own[i];
            f.message = e->text;
            return report_failure(&f, b->o.json);
        }
    }
    int status = report(e, b->o.json);
    return b->signal ? 128 + b->signal : status;
}

int remote_sandbox(int argc, char **argv) {
    struct sandbox_cmd b = {.signals = -1, .refused = CLIENT_OUTCOME_INIT};
    struct err e;
    int status;
    if (sandbox_options_parse(argc, argv, &b.o, &e) < 0) {
        status = sandbox_cmd_fail(&b, &e);
    } else if (b.o.help) {
        sandbox_options_help(b.o.verb);
        status = 0;
    } else {
        status = run_verb(&b, &e) < 0 ? sandbox_cmd_fail(&b, &e) : b.status;
    }
    /* What was printed may have gone to a full disk. */
    if (fflush(stdout) != 0 && status == 0)
        status = EXIT_CLOCHE;
    remote_free(b.r);
    fd_close(&b.signals);
    client_outcome_done(&b.refused);
    sandbox_options_done(&b.o);
    return status;
}
