/* `cloche run`: one program, start to end.
 *
 * Everything that can be wrong on this side (options, files, the output directory) is found before
 * an engine is asked (job.c). Then: an engine's socket, or a private engine; one connection, one
 * run (client.c); the result; the private engine's end. With --server another program of ours takes
 * over: libcurl and all that it brings would more than double the time that a run takes. */

#include "cli/run.h"

#include "base/fd.h"
#include "cli/input.h"
#include "cli/job.h"
#include "cli/remote.h"
#include "cli/report.h"
#include "config/options.h"
#include "supervisor/listen.h"
#include "supervisor/own_engine.h"

#include <string.h>

#define INLINE_CODE 32768 /* more goes into a memfd */

struct run {
    struct job job;
    int code_fd;
    int sock;
    struct own_engine engine;
};

static void run_done(struct run *r) {
    fd_close(&r->sock);
    own_engine_end(&r->engine);
    fd_close(&r->code_fd);
    job_done(&r->job);
}

static void say(const struct run *r, const char *before, const char *text, const char *after) {
    if (!r->job.cmd.verbose)
        return;
    AUTO_BUF line = BUF_INIT;
    buf_addf(&line, "%s%s%s", before, text, after);
    report_say(line.data);
}

static int reach_engine(struct run *r, struct err *e) {
    struct options *o = r->job.options;
    const char *path = options_text(o, "socket");
    if (listen_connect(path, &r->sock, e) == 0) {
        say(r, "using the engine on ", path, "");
        return 0;
    }
    /* Whoever names an engine means that one; only the usual place may be empty. */
    bool named = options_origin(o, "socket") >= ORIGIN_ENV;
    if (named || strcmp(e->kind, "no_engine") != 0)
        return -1;
    say(r, "no engine at ", path, "; starting a private one");
    struct own_program program = {r->job.cmd.msg.profile, r->job.code.data, r->job.code.len,
                                  r->job.cmd.network};
    return own_engine_start(o, &program, &r->engine, &r->sock, e);
}

static int pack_code(struct run *r, struct err *e) {
    struct run_msg *m = &r->job.cmd.msg;
    m->code = (const uint8_t *)r->job.code.data;
    m->code_len = r->job.code.len;
    if (m->code_len <= INLINE_CODE)
        return 0;
    if (memfd_of("code", r->job.code.data, r->job.code.len, &r->code_fd, e) < 0)
        return -1;
    m->code_fd = r->code_fd;
    m->flags |= RUN_CODE_FD;
    return 0;
}

static int prepare(struct run *r, struct err *e) {
    struct run_options *cmd = &r->job.cmd;
    if (job_prepare(&r->job, e) < 0 || pack_code(r, e) < 0 || options_load(r->job.options, e) < 0)
        return -1;
    if (cmd->json)
        cmd->msg.flags |= RUN_QUIET;
    /* The result lists the files, so they are asked for with --json too. */
    if (cmd->out || cmd->json)
        cmd->msg.flags |= RUN_FILES;
    return 0;
}

static int execute(struct run *r, struct err *e) {
    struct job *j = &r->job;
    struct client_job job = {
        .sock = r->sock,
        .signals = j->signals,
        .inputs = j->inputs,
        .ninputs = j->ninputs,
        .network = j->cmd.network,
        .run = &j->cmd.msg,
        .verbose = j->cmd.verbose,
        .out = j->cmd.out ? &j->out : NULL,
    };
    int rc = client_run(&job, &j->outcome, e);
    fd_close(&r->sock);
    return rc;
}

static int finish_run(struct run *r) {
    const struct client_outcome *o = &r->job.outcome;
    if (o->end != CLIENT_LOST || r->engine.warden.pid <= 0)
        return job_finish(&r->job);
    struct err e;
    own_engine_explain(&r->engine, o->why.data, &e);
    return report(&e, r->job.cmd.json);
}

int verb_run(int argc, char **argv) {
    struct run r = {.job = JOB_INIT, .code_fd = -1, .sock = -1, .engine = OWN_ENGINE_INIT};
    struct err e;
    int status;
    int rc = job_parse(&r.job, argc, argv, &e);
    if (rc == 0 && r.job.cmd.help) {
        run_options_help();
        status = 0;
    } else if (rc == 0 && r.job.cmd.server) {
        status = remote_exec(argv, r.job.cmd.json);
    } else if (rc < 0 || prepare(&r, &e) < 0 || reach_engine(&r, &e) < 0 || execute(&r, &e) < 0) {
        status = report(&e, r.job.cmd.json);
    } else {
        status = finish_run(&r);
    }
    run_done(&r);
    return status;
}
