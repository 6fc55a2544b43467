/* `cloche run --server URL`.
 *
 * The output passes through as it comes: POST /v1/execute/stream (events.h). With --json it is
 * POST /v1/execute, whose answer is printed as it is. A signal closes the connection, and the
 * server kills the program then. */

#include "remote/run.h"

#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "cli/job.h"
#include "cli/report.h"
#include "remote/events.h"
#include "remote/net/call.h"
#include "remote/net/download.h"
#include "remote/net/request.h"
#include "remote/notes.h"

#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define RESULT_TIMES 12 /* two streams, six bytes for a byte that JSON has to escape */

struct stream {
    struct events events;
    struct job *job;
    json_t *result; /* owned, or NULL */
};

static void leave(struct job *j, int signal) {
    j->outcome.end = CLIENT_LEFT;
    j->outcome.status = 128 + (uint32_t)signal;
}

/* ---- events ---- */

static int print_output(struct events *ev, const json_t *event, struct err *e) {
    const json_t *data = json_object_get(event, "data");
    const char *stream = json_string_value(json_object_get(event, "stream"));
    if (!json_is_string(data) || !stream)
        return err_user(e, "bad_reply", "the server sent an output event without output");
    events_print(ev, strcmp(stream, "stderr") == 0 ? STDERR_FILENO : STDOUT_FILENO,
                 json_string_value(data), json_string_length(data));
    return 0;
}

static int run_on_event(void *arg, const char *name, json_t *event, struct err *e) {
    struct stream *s = arg;
    if (strcmp(name, "output") == 0)
        return print_output(&s->events, event, e);
    if (strcmp(name, "result") == 0) {
        s->result = json_incref(event);
        s->events.over = true;
    } else if (strcmp(name, "error") == 0) {
        remote_error(event, &s->job->outcome);
        s->events.over = true;
    }
    return 0;
}

static int follow_run(struct job *j, struct remote *r, const struct buf *body, json_t **ret,
                      struct err *e) {
    struct stream s = {.events = EVENTS_INIT, .job = j};
    s.events.fn = run_on_event;
    s.events.arg = &s;
    const struct remote_sink sink = events_sink(&s.events);
    const struct remote_call c = {.method = "POST",
                                  .path = "/v1/execute/stream",
                                  .json = body,
                                  .upload = -1,
                                  .sink = &sink,
                                  .gives_signs = true};
    AUTO_REPLY reply = REMOTE_REPLY_INIT;
    int rc = remote_do(r, &c, &reply, e);
    if (s.events.unread)
        leave(j, SIGPIPE); /* as a program of this shell would */
    if (rc == 0 && s.events.broken) {
        *e = s.events.why;
        rc = -1;
    } else if (rc == 0 && reply.signal) {
        leave(j, reply.signal);
    } else if (rc == 0 && reply.status && reply.status / 100 != 2) {
        remote_refused(&reply, &j->outcome);
    } else if (rc == 0 && !s.events.over) {
        rc = err_user(e, "engine_gone", "the server went away while the program ran");
    }
    *ret = s.result;
    events_done(&s.events);
    return rc;
}

/* ---- the whole result ---- */

static int ask_server(struct job *j, struct remote *r, const struct buf *body, json_t **ret,
                      struct err *e) {
    const uint64_t output = j->cmd.msg.limits.output_bytes * RESULT_TIMES;
    const struct remote_call c = {.method = "POST",
                                  .path = "/v1/execute",
                                  .json = body,
                                  .upload = -1,
                                  .most = REMOTE_RESULT_MAX + (size_t)output};
    AUTO_REPLY reply = REMOTE_REPLY_INIT;
    if (remote_do(r, &c, &reply, e) < 0)
        return -1;
    if (reply.signal) {
        leave(j, reply.signal);
        return 0;
    }
    if (reply.status / 100 != 2) {
        remote_refused(&reply, &j->outcome);
        return 0;
    }
    json_error_t ignored;
    *ret = json_loadb(reply.body.data, reply.body.len, JSON_ALLOW_NUL, &ignored);
    if (!json_is_object(*ret))
        return err_user(e, "bad_reply", "the server answered with what is no result");
    /* At a terminal nothing but ASCII: what is between the quotes may be anybody's. */
    AUTO_FREE char *plain =
        isatty(STDOUT_FILENO) ? json_dumps(*ret, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
    if (plain)
        buf_adds(&j->outcome.json, plain);
    else
        buf_add(&j->outcome.json, reply.body.data, reply.body.len);
    return 0;
}

/* ---- what came of it ---- */

static void take_result(struct job *j, const json_t *result) {
    const json_t *code = json_object_get(result, "exit_code");
    bool timed_out = json_is_true(json_object_get(result, "timed_out"));
    j->outcome.end = CLIENT_RESULT;
    j->outcome.status = timed_out               ? 124
                        : json_is_integer(code) ? (uint32_t)json_integer_value(code) & 255
                                                : 128 + SIGKILL;
    notes_add(result, j->cmd.out != NULL, &j->outcome.why);
}

static int fetch(struct job *j, struct remote *r, const json_t *file, struct err *e) {
    const char *path = json_string_value(json_object_get(file, "path"));
    const char *id = json_string_value(json_object_get(file, "file_id"));
    char quoted[160];
    if (!path)
        return err_user(e, "bad_reply", "the server named a file without a path");
    log_quote(path, quoted, sizeof quoted);
    if (!id || strpbrk(id, "/?#% "))
        return err_user(e, "output_failed", "the server did not keep %s: its store is full",
                        quoted);
    json_int_t size = json_integer_value(json_object_get(file, "size_bytes"));
    AUTO_FD fd = memfd_create("file", MFD_CLOEXEC);
    if (fd < 0 || size < 0)
        return err_sys(e, "memfd_create");
    struct download d = {.fd = fd, .left = (uint64_t)size};
    const struct remote_sink sink = download_sink(&d);
    AUTO_BUF url = BUF_INIT;
    buf_addf(&url, "/v1/files/%s", id);
    const struct remote_call c = {
        .method = "GET", .path = url.data, .upload = -1, .sink = &sink, .gives_signs = true};
    AUTO_REPLY reply = REMOTE_REPLY_INIT;
    if (remote_do(r, &c, &reply, e) < 0)
        return -1;
    if (reply.signal) {
        leave(j, reply.signal);
        return 0;
    }
    if (reply.status != 200 || d.failed || d.left)
        return err_user(e, "output_failed", "the server did not give %s", quoted);
    return outdir_write(&j->out, path, fd, (uint64_t)size, e);
}

static int fetch_files(struct job *j, struct remote *r, const json_t *result, struct err *e) {
    size_t i;
    const json_t *file;
    if (outdir_open(&j->out, e) < 0)
        return -1;
    json_array_foreach(json_object_get(result, "files"), i, file) {
        if (fetch(j, r, file, e) < 0)
            return -1;
        if (j->outcome.end == CLIENT_LEFT)
            return 0;
    }
    return 0;
}

static int execute(struct job *j, struct remote *r, const struct buf *body, struct err *e) {
    json_t *result = NULL;
    int rc = (j->cmd.json ? ask_server : follow_run)(j, r, body, &result, e);
    if (rc == 0 && result) {
        take_result(j, result);
        if (j->cmd.out)
            rc = fetch_files(j, r, result, e);
    }
    json_decref(result);
    return rc;
}

static int run_program(struct job *j, struct err *e) {
    AUTO_REMOTE r = NULL;
    if (job_prepare(j, e) < 0 || remote_open(j->cmd.server, j->cmd.key_file, j->signals, &r, e) < 0)
        return -1;
    if (j->cmd.verbose) {
        AUTO_BUF line = BUF_INIT;
        buf_addf(&line, "using the server at %s", j->cmd.server);
        report_say(line.data);
    }
    struct request q = REQUEST_INIT;
    bool refused;
    int rc = request_make(&q, j, r, &refused, e);
    if (rc == 0 && q.signal)
        leave(j, q.signal);
    else if (rc == 0 && !refused)
        rc = execute(j, r, &q.body, e);
    request_done(&q, r);
    return rc;
}

int remote_run(int argc, char **argv) {
    struct job j = JOB_INIT;
    struct err e;
    int status;
    if (job_parse(&j, argc, argv, &e) < 0 || run_program(&j, &e) < 0)
        status = report(&e, j.cmd.json);
    else
        status = job_finish(&j);
    job_done(&j);
    return status;
}
