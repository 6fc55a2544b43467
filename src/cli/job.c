/* See job.h. */

#include "cli/job.h"

#include "base/fd.h"
#include "cli/input.h"
#include "cli/report.h"
#include "cli/screen.h"
#include "config/options.h"
#include "loop/loop.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

int job_parse(struct job *j, int argc, char **argv, struct err *e) {
    j->options = options_new();
    int rc = run_options_parse(argc, argv, j->options, &j->cmd, e);
    j->out.path = j->cmd.out;
    return rc;
}

void job_done(struct job *j) {
    fd_close(&j->signals);
    outdir_done(&j->out);
    for (unsigned i = 0; i < j->ninputs; i++)
        input_done(&j->inputs[i]);
    free(j->inputs);
    buf_done(&j->code);
    client_outcome_done(&j->outcome);
    run_options_done(&j->cmd);
    options_free(j->options);
}

/* Every --file is open from here to its sending. */
static void raise_open_files(void) {
    struct rlimit l;
    if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur < l.rlim_max) {
        l.rlim_cur = l.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &l);
    }
}

static int open_inputs(struct job *j, struct err *e) {
    raise_open_files();
    j->inputs = xcalloc(j->cmd.ninputs, sizeof *j->inputs);
    for (; j->ninputs < j->cmd.ninputs; j->ninputs++)
        if (input_open(j->cmd.inputs[j->ninputs], &j->inputs[j->ninputs], e) < 0)
            return -1;
    return 0;
}

static int read_code(struct job *j, struct err *e) {
    if (!j->cmd.code)
        return input_code(j->cmd.file, &j->code, e);
    buf_adds(&j->code, j->cmd.code);
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

int job_prepare(struct job *j, struct err *e) {
    if (j->cmd.out && outdir_check(j->cmd.out, e) < 0)
        return -1;
    if (read_code(j, e) < 0 || open_inputs(j, e) < 0)
        return -1;
    return take_signals(&j->signals, e);
}

/* The run is over: from here a signal ends us as it ends any program, even in a write that blocks.
 */
static void release_signals(struct job *j) {
    fd_close(&j->signals);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static int show(struct screen *s, const char *text, size_t len, struct err *e) {
    AUTO_BUF shown = BUF_INIT;
    screen_add(s, STDOUT_FILENO, &shown, text, len);
    return fd_write_all(STDOUT_FILENO, shown.data, shown.len, e);
}

/* The result may have a hundred megabytes; it is passed on, not read. */
static int print_json(const struct client_outcome *o, struct err *e) {
    struct screen screen = {0}; /* JSON escapes controls, but not all of them */
    if (show(&screen, o->json.data, o->json.len, e) < 0)
        return -1;
    char chunk[65536];
    off_t at = 0;
    while (o->json_fd >= 0) {
        ssize_t n = pread(o->json_fd, chunk, sizeof chunk, at);
        if (n < 0)
            return err_sys(e, "read the result");
        if (n == 0)
            break;
        if (show(&screen, chunk, (size_t)n, e) < 0)
            return -1;
        at += n;
    }
    return fd_write_all(STDOUT_FILENO, "\n", 1, e);
}

static int finish_result(struct job *j) {
    const struct client_outcome *o = &j->outcome;
    report_notes(o->why.data);
    struct err e;
    if (!j->cmd.json || print_json(o, &e) == 0)
        return (int)o->status;
    if (e.code == EPIPE)
        return 128 + SIGPIPE;
    struct err why;
    err_user(&why, "output_failed", "cannot write the result: %s", strerror(e.code));
    return report(&why, false);
}

int job_finish(struct job *j) {
    const struct client_outcome *o = &j->outcome;
    release_signals(j);
    struct failure f = {o->kind.data, o->message.data, o->remediation.data, o->retryable};
    struct err e;
    switch (o->end) {
    case CLIENT_RESULT:
        return finish_result(j);
    case CLIENT_REFUSED:
        return report_failure(&f, j->cmd.json);
    case CLIENT_LOST:
        err_user(&e, "engine_gone", "%s", o->why.data);
        return report(&e, j->cmd.json);
    case CLIENT_LEFT:
        if (o->status != 128 + SIGPIPE) {
            err_user(&e, "interrupted", "interrupted before the program ended");
            (void)report(&e, j->cmd.json);
        }
        return (int)o->status;
    }
    return EXIT_CLOCHE;
}
