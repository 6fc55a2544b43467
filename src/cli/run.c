/* `cloche run`: one program, start to end.
 *
 * Everything that can be wrong on this side (options, files, the output directory) is found before
 * an engine is asked. Then: an engine's socket, or a private engine; one connection, one run
 * (client.c); the result; the private engine's end. */

#include "base/fd.h"
#include "cli/client.h"
#include "cli/input.h"
#include "cli/listen.h"
#include "cli/options.h"
#include "cli/outdir.h"
#include "cli/private.h"
#include "cli/report.h"
#include "cli/run_options.h"
#include "cli/verbs.h"
#include "loop/loop.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define INLINE_CODE 32768 /* more goes into a memfd */

struct run {
    struct options *options;
    struct run_options cmd;
    struct buf code;
    int code_fd;
    struct input *inputs;
    unsigned ninputs;
    struct outdir out;
    int signals;
    int sock;
    struct private_engine private;
    struct client_outcome outcome;
};

static void run_done(struct run *r) {
    fd_close(&r->sock);
    private_end(&r->private);
    fd_close(&r->signals);
    outdir_done(&r->out);
    for (unsigned i = 0; i < r->ninputs; i++)
        input_done(&r->inputs[i]);
    free(r->inputs);
    fd_close(&r->code_fd);
    buf_done(&r->code);
    client_outcome_done(&r->outcome);
    run_options_done(&r->cmd);
    options_free(r->options);
}

/* Every --file is open from here to its sending. */
static void raise_open_files(void) {
    struct rlimit l;
    if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur < l.rlim_max) {
        l.rlim_cur = l.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &l);
    }
}

static int open_inputs(struct run *r, struct err *e) {
    raise_open_files();
    r->inputs = xcalloc(r->cmd.ninputs, sizeof *r->inputs);
    for (; r->ninputs < r->cmd.ninputs; r->ninputs++)
        if (input_open(r->cmd.inputs[r->ninputs], &r->inputs[r->ninputs], e) < 0)
            return -1;
    return 0;
}

static int read_code(struct run *r, struct err *e) {
    if (r->cmd.code)
        buf_adds(&r->code, r->cmd.code);
    else if (input_code(r->cmd.file, &r->code, e) < 0)
        return -1;
    struct run_msg *m = &r->cmd.msg;
    m->code = (const uint8_t *)r->code.data;
    m->code_len = r->code.len;
    if (m->code_len <= INLINE_CODE)
        return 0;
    if (memfd_of("code", r->code.data, r->code.len, &r->code_fd, e) < 0)
        return -1;
    m->code_fd = r->code_fd;
    m->flags |= RUN_CODE_FD;
    return 0;
}

/* A signal that was ignored when we came (a job in the background) stays so. */
static int take_signals(int *ret_fd, struct err *e) {
    int wanted[2];
    size_t n = 0;
    const int all[] = {SIGINT, SIGTERM};
    for (size_t i = 0; i < 2; i++) {
        struct sigaction now;
        if (sigaction(all[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            wanted[n++] = all[i];
    }
    return loop_signals(wanted, n, ret_fd, e);
}

static void say(const struct run *r, const char *before, const char *text, const char *after) {
    if (!r->cmd.verbose)
        return;
    AUTO_BUF line = BUF_INIT;
    buf_addf(&line, "%s%s%s", before, text, after);
    report_say(line.data);
}

static int reach_engine(struct run *r, struct err *e) {
    const char *path = options_text(r->options, "socket");
    if (listen_connect(path, &r->sock, e) == 0) {
        say(r, "using the engine on ", path, "");
        return 0;
    }
    /* Whoever names an engine means that one; only the usual place may be empty. */
    bool named = options_origin(r->options, "socket") >= ORIGIN_ENV;
    if (named || strcmp(e->kind, "no_engine") != 0)
        return -1;
    say(r, "no engine at ", path, "; starting a private one");
    struct private_program program = {r->cmd.msg.profile, r->code.data, r->code.len};
    return private_start(r->options, &program, &r->private, &r->sock, e);
}

static int prepare(struct run *r, struct err *e) {
    if (r->cmd.out && outdir_check(r->cmd.out, e) < 0)
        return -1;
    if (read_code(r, e) < 0 || open_inputs(r, e) < 0 || options_load(r->options, e) < 0)
        return -1;
    if (r->cmd.json)
        r->cmd.msg.flags |= RUN_QUIET;
    /* The result lists the files, so they are asked for with --json too. */
    if (r->cmd.out || r->cmd.json)
        r->cmd.msg.flags |= RUN_FILES;
    return take_signals(&r->signals, e);
}

static int execute(struct run *r, struct err *e) {
    struct client_job job = {
        .sock = r->sock,
        .signals = r->signals,
        .inputs = r->inputs,
        .ninputs = r->ninputs,
        .run = &r->cmd.msg,
        .verbose = r->cmd.verbose,
        .out = r->cmd.out ? &r->out : NULL,
    };
    return client_run(&job, &r->outcome, e);
}

/* The run is over: from here a signal ends us as it ends any program, even in a write that blocks.
 */
static void release_signals(struct run *r) {
    fd_close(&r->signals);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* The result may have a hundred megabytes; it is passed on, not read. */
static int print_json(const struct client_outcome *o, struct err *e) {
    if (fd_write_all(STDOUT_FILENO, o->json.data, o->json.len, e) < 0)
        return -1;
    char chunk[65536];
    off_t at = 0;
    while (o->json_fd >= 0) {
        ssize_t n = pread(o->json_fd, chunk, sizeof chunk, at);
        if (n < 0)
            return err_sys(e, "read the result");
        if (n == 0)
            break;
        if (fd_write_all(STDOUT_FILENO, chunk, (size_t)n, e) < 0)
            return -1;
        at += n;
    }
    return fd_write_all(STDOUT_FILENO, "\n", 1, e);
}

static int finish_result(struct run *r) {
    const struct client_outcome *o = &r->outcome;
    if (o->why.len)
        report_say(o->why.data);
    struct err e;
    if (!r->cmd.json || print_json(o, &e) == 0)
        return (int)o->status;
    if (e.code == EPIPE)
        return 128 + SIGPIPE;
    struct err why;
    err_user(&why, "output_failed", "cannot write the result: %s", strerror(e.code));
    return report(&why, false);
}

static int finish_lost(struct run *r) {
    struct err e;
    if (r->private.warden.pid > 0)
        private_explain(&r->private, r->outcome.why.data, &e);
    else
        err_user(&e, "engine_gone", "%s", r->outcome.why.data);
    return report(&e, r->cmd.json);
}

static int finish(struct run *r) {
    const struct client_outcome *o = &r->outcome;
    fd_close(&r->sock);
    release_signals(r);
    struct failure f = {o->kind.data, o->message.data, o->remediation.data, o->retryable};
    struct err e;
    switch (o->end) {
    case CLIENT_RESULT:
        return finish_result(r);
    case CLIENT_REFUSED:
        return report_failure(&f, r->cmd.json);
    case CLIENT_LOST:
        return finish_lost(r);
    case CLIENT_LEFT:
        if (o->status != 128 + SIGPIPE) {
            err_user(&e, "interrupted", "interrupted before the program ended");
            (void)report(&e, r->cmd.json);
        }
        return (int)o->status;
    }
    return EXIT_CLOCHE;
}

int verb_run(int argc, char **argv) {
    struct run r = {.options = options_new(),
                    .code = BUF_INIT,
                    .code_fd = -1,
                    .out.fd = -1,
                    .signals = -1,
                    .sock = -1,
                    .private = PRIVATE_ENGINE_INIT,
                    .outcome = CLIENT_OUTCOME_INIT};
    struct err e;
    int status;
    int rc = run_options_parse(argc, argv, r.options, &r.cmd, &e);
    r.out.path = r.cmd.out;
    if (rc == 0 && r.cmd.help) {
        run_options_help();
        status = 0;
    } else if (rc < 0 || prepare(&r, &e) < 0 || reach_engine(&r, &e) < 0 || execute(&r, &e) < 0) {
        status = report(&e, r.cmd.json);
    } else {
        status = finish(&r);
    }
    run_done(&r);
    return status;
}
