/* See request.h. JSON carries text: a program, an argument or an input that is none cannot go this
 * way, and is refused with the reason rather than changed on its way. */

#include "remote/net/request.h"

#include "base/base64.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "cli/input.h"
#include "cli/job.h"
#include "remote/net/call.h"
#include "remote/net/limits_json.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#define INLINE_ONE (1u << 20)  /* a larger file is uploaded */
#define INLINE_ALL (16u << 20) /* and so are those beyond this many bytes together */
#define STDIN_MAX  (16u << 20)

static int set_text(json_t *to, const char *key, const char *what, const char *text, size_t len,
                    struct err *e) {
    json_t *v = memchr(text, '\0', len) ? NULL : json_stringn(text, len);
    if (!v)
        return err_user(e, "not_text",
                        "%s is not UTF-8 text without NUL bytes, and over HTTP it has to be", what);
    json_object_set_new(to, key, v);
    return 0;
}

/* ---- stdin ---- */

/* 1: there is something to read; 0: a signal came. */
static int wait_for_stdin(struct request *q, int signals, struct err *e) {
    struct pollfd p[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
    while (poll(p, 2, -1) < 0)
        if (errno != EINTR)
            return err_sys(e, "poll");
    struct signalfd_siginfo info;
    if (!p[1].revents || read(signals, &info, sizeof info) != (ssize_t)sizeof info)
        return 1;
    q->signal = (int)info.ssi_signo;
    return 0;
}

static int add_stdin(struct request *q, const struct job *j, json_t *to, struct err *e) {
    AUTO_BUF all = BUF_INIT;
    if (!(j->cmd.msg.flags & RUN_STDIN))
        return 0;
    for (;;) {
        int rc = wait_for_stdin(q, j->signals, e);
        if (rc <= 0)
            return rc;
        ssize_t n = read(STDIN_FILENO, buf_reserve(&all, 65536), 65536);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n <= 0)
            break;
        buf_commit(&all, (size_t)n);
        if (all.len > STDIN_MAX)
            return err_user(e, "too_large",
                            "--stdin: more than %u bytes; over HTTP the input is sent before the "
                            "program starts",
                            STDIN_MAX);
    }
    return set_text(to, "stdin", "--stdin", all.data, all.len, e);
}

/* ---- files ---- */

static int read_whole(const struct input *i, size_t size, struct buf *to, struct err *e) {
    while (to->len < size) {
        ssize_t n = pread(i->fd, buf_reserve(to, size - to->len), size - to->len, (off_t)to->len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_user(e, "not_readable", "--file %s: %s", i->path, strerror(errno));
        if (n == 0)
            break;
        buf_commit(to, (size_t)n);
    }
    return 0;
}

static int add_inline(const struct input *i, size_t size, json_t *file, struct err *e) {
    AUTO_BUF raw = BUF_INIT;
    if (read_whole(i, size, &raw, e) < 0)
        return -1;
    AUTO_BUF text = BUF_INIT;
    base64_encode(&text, raw.data, raw.len);
    json_object_set_new(file, "content", json_stringn(text.data, text.len));
    json_object_set_new(file, "encoding", json_string("base64"));
    return 0;
}

/* 1: it has an id now; 0: refused or interrupted. */
static int upload(struct request *q, struct job *j, struct remote *r, const struct input *i,
                  struct err *e) {
    AUTO_REPLY reply = REMOTE_REPLY_INIT;
    const struct remote_call c = {
        .method = "POST", .path = "/v1/files", .upload = i->fd, .upload_name = "input"};
    if (remote_do(r, &c, &reply, e) < 0)
        return -1;
    q->signal = reply.signal;
    if (q->signal)
        return 0;
    if (reply.status / 100 != 2) {
        remote_refused(&reply, &j->outcome);
        return 0;
    }
    json_auto_t *root = NULL;
    if (json_read(reply.body.data, reply.body.len, 8, &root, e) < 0)
        return err_user(e, "bad_reply", "the server answered an upload with what is no JSON");
    const char *id = json_string_value(json_object_get(root, "file_id"));
    if (!id || strlen(id) >= sizeof q->uploads[0] ||
        id[strspn(id, "0123456789abcdefghijklmnopqrst"
                      "uvwxyzABCDEFGHIJKLMNOPQRSTUVWXY"
                      "Z_-")])
        return err_user(e, "bad_reply", "the server answered an upload without an id");
    q->uploads = xrealloc(q->uploads, (q->nuploads + 1) * sizeof *q->uploads);
    memcpy(q->uploads[q->nuploads++], id, strlen(id) + 1);
    return 1;
}

static int add_files(struct request *q, struct job *j, struct remote *r, json_t *to,
                     struct err *e) {
    json_t *list = json_array();
    size_t total = 0;
    json_object_set_new(to, "files", list);
    for (unsigned k = 0; k < j->ninputs; k++) {
        const struct input *i = &j->inputs[k];
        struct stat st;
        if (fstat(i->fd, &st) < 0)
            return err_sys(e, "--file %s", i->path);
        json_t *file = json_object();
        json_array_append_new(list, file);
        if (set_text(file, "path", "the name in --file", i->path, strlen(i->path), e) < 0)
            return -1;
        size_t size = (size_t)st.st_size;
        if (size <= INLINE_ONE && total + size <= INLINE_ALL) {
            total += size;
            if (add_inline(i, size, file, e) < 0)
                return -1;
            continue;
        }
        int rc = upload(q, j, r, i, e);
        if (rc <= 0)
            return rc;
        json_object_set_new(file, "file_id", json_string(q->uploads[q->nuploads - 1]));
    }
    return 1;
}

/* ---- the rest ---- */

static int add_strings(const struct run_msg *m, json_t *to, struct err *e) {
    json_t *args = json_array(), *env = json_object();
    json_object_set_new(to, "args", args);
    json_object_set_new(to, "env", env);
    for (uint32_t i = 0; i < m->nargs; i++) {
        json_t *v = json_string(m->args[i]);
        if (!v)
            return err_user(e, "not_text", "argument %u is not UTF-8, and over HTTP it has to be",
                            i + 1);
        json_array_append_new(args, v);
    }
    for (uint32_t i = 0; i < m->nenv; i++) {
        const char *equals = strchr(m->env[i], '=');
        AUTO_FREE char *name = xstrndup(m->env[i], (size_t)(equals - m->env[i]));
        json_t *v = json_string(equals + 1);
        if (!name || !v || json_object_set_new(env, name, v) < 0)
            return err_user(e, "not_text", "an --env is not UTF-8, and over HTTP it has to be");
    }
    return 0;
}

static void add_limits(const struct run_msg *m, json_t *to) {
    json_t *limits = json_object();
    limits_json(&m->limits, LIMIT_OF_WHOLE | LIMIT_OF_CELL, limits);
    limits_json(&m->limits, LIMIT_OF_CALL, to);
    json_object_set_new(to, "limits", limits);
}

static int dump(const json_t *root, struct buf *to, struct err *e) {
    AUTO_FREE char *text = json_dumps(root, JSON_COMPACT);
    if (!text)
        return err_set(e, ENOMEM, "the request cannot be written");
    buf_adds(to, text);
    return 0;
}

int request_make(struct request *q, struct job *j, struct remote *r, bool *ret_refused,
                 struct err *e) {
    const struct run_msg *m = &j->cmd.msg;
    json_auto_t *root = json_object();
    *ret_refused = false;
    if (set_text(root, "code", "the program", j->code.data, j->code.len, e) < 0 ||
        set_text(root, "profile", "--profile", m->profile, strlen(m->profile), e) < 0 ||
        add_strings(m, root, e) < 0)
        return -1;
    const char *network = j->cmd.network;
    if (network && set_text(root, "network", "--network", network, strlen(network), e) < 0)
        return -1;
    add_limits(m, root);
    json_object_set_new(root, "last_line_interactive",
                        json_boolean((m->flags & RUN_LAST_LINE) != 0));
    json_object_set_new(root, "on_disconnect", json_string("interrupt"));
    if (add_stdin(q, j, root, e) < 0)
        return -1;
    if (q->signal)
        return 0;
    int rc = add_files(q, j, r, root, e);
    if (rc < 0)
        return -1;
    *ret_refused = rc == 0 && !q->signal;
    return rc == 0 ? 0 : dump(root, &q->body, e);
}

void request_done(struct request *q, struct remote *r) {
    for (unsigned i = 0; i < q->nuploads; i++) {
        AUTO_REPLY reply = REMOTE_REPLY_INIT;
        AUTO_BUF path = BUF_INIT;
        struct err ignored; /* it has a time to live */
        buf_addf(&path, "/v1/files/%s", q->uploads[i]);
        const struct remote_call c = {.method = "DELETE", .path = path.data, .upload = -1};
        if (remote_do(r, &c, &reply, &ignored) < 0 || reply.signal)
            break;
    }
    free(q->uploads);
    buf_done(&q->body);
}
