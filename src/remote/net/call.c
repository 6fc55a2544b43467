/* See call.h.
 *
 * The multi interface with one transfer in it: between two steps of libcurl we look at our signals
 * and at whoever takes the output. A signal, or a sink that is over, takes the transfer out, which
 * closes its connection: the server then ends the program. */

#include "remote/net/call.h"

#include "base/json.h"
#include "cli/client.h"
#include "remote/net/server.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#define SILENCE_S    60 /* a stream gives a sign of life every 10 s */
#define ERR_BODY_MAX (64u << 10)

void remote_reply_done(struct remote_reply *r) {
    buf_done(&r->body);
}

/* ---- one transfer ---- */

struct transfer {
    struct remote *remote;
    const struct remote_call *call;
    struct remote_reply *reply;
    CURL *easy;
    struct curl_slist *headers;
    curl_mime *form;
    off_t read_at; /* of what is uploaded */
    bool paused, too_large;
    char why[CURL_ERROR_SIZE];
};

static bool is_success(CURL *easy) {
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    return status / 100 == 2;
}

static size_t call_on_body(char *data, size_t one, size_t len, void *arg) {
    struct transfer *t = arg;
    (void)one;
    bool good = is_success(t->easy);
    if (good && t->call->sink) {
        if (t->call->sink->take(t->call->sink->arg, data, len))
            return len;
        t->paused = true;
        return CURL_WRITEFUNC_PAUSE;
    }
    size_t most = !good ? ERR_BODY_MAX : t->call->most ? t->call->most : REMOTE_ANSWER_MAX;
    if (t->reply->body.len + len > most) {
        t->too_large = true;
        return 0;
    }
    buf_add(&t->reply->body, data, len);
    return len;
}

static size_t on_header(char *line, size_t one, size_t len, void *arg) {
    struct transfer *t = arg;
    if (len > 5 && strncasecmp(line, "etag:", 5) == 0)
        t->reply->has_etag = true;
    return one * len;
}

static size_t on_upload(char *to, size_t one, size_t len, void *arg) {
    struct transfer *t = arg;
    ssize_t n = pread(t->call->upload, to, one * len, t->read_at);
    if (n < 0)
        return CURL_READFUNC_ABORT;
    t->read_at += n;
    return (size_t)n;
}

static int on_upload_seek(void *arg, curl_off_t to, int origin) {
    struct transfer *t = arg;
    if (origin != SEEK_SET)
        return CURL_SEEKFUNC_CANTSEEK;
    t->read_at = to;
    return CURL_SEEKFUNC_OK;
}

static void add_header(struct transfer *t, const char *line) {
    struct curl_slist *more = curl_slist_append(t->headers, line);
    if (more)
        t->headers = more;
}

static int add_upload(struct transfer *t, struct err *e) {
    struct stat st;
    if (fstat(t->call->upload, &st) < 0)
        return err_sys(e, "fstat");
    if (!t->call->upload_name) {
        curl_easy_setopt(t->easy, CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(t->easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)st.st_size);
        curl_easy_setopt(t->easy, CURLOPT_READFUNCTION, on_upload);
        curl_easy_setopt(t->easy, CURLOPT_READDATA, t);
        curl_easy_setopt(t->easy, CURLOPT_SEEKFUNCTION, on_upload_seek);
        curl_easy_setopt(t->easy, CURLOPT_SEEKDATA, t);
        return 0;
    }
    t->form = curl_mime_init(t->easy);
    curl_mimepart *part = curl_mime_addpart(t->form);
    curl_mime_name(part, "file");
    curl_mime_filename(part, t->call->upload_name);
    curl_mime_type(part, "application/octet-stream");
    curl_mime_data_cb(part, st.st_size, on_upload, on_upload_seek, NULL, t);
    curl_easy_setopt(t->easy, CURLOPT_MIMEPOST, t->form);
    return 0;
}

static int on_moved(void *arg, curl_off_t down_total, curl_off_t down, curl_off_t up_total,
                    curl_off_t up) {
    struct transfer *t = arg;
    bool sends = t->call->upload >= 0;
    t->call->watch->moved(t->call->watch->arg, (uint64_t)(sends ? up : down),
                          (uint64_t)(sends ? up_total : down_total));
    return 0;
}

static void add_headers(struct transfer *t) {
    add_header(t, "Expect:");
    if (t->remote->key)
        add_header(t, t->remote->key);
    if (t->call->json)
        add_header(t, "Content-Type: application/json");
    if (t->call->header)
        add_header(t, t->call->header);
    if (t->call->upload_type)
        add_header(t, t->call->upload_type);
    curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, t->headers);
}

static int set_up_call(struct transfer *t, struct err *e) {
    const struct remote *r = t->remote;
    CURL *h = t->easy;
    AUTO_BUF url = BUF_INIT;
    buf_addf(&url, "%s%s", r->base, t->call->path);
    remote_prepare(r, h);
    curl_easy_setopt(h, CURLOPT_URL, url.data);
    curl_easy_setopt(h, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(h, CURLOPT_CUSTOMREQUEST, t->call->method);
    curl_easy_setopt(h, CURLOPT_ERRORBUFFER, t->why);
    curl_easy_setopt(h, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(h, CURLOPT_HEADERDATA, t);
    curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, call_on_body);
    curl_easy_setopt(h, CURLOPT_WRITEDATA, t);
    curl_easy_setopt(h, CURLOPT_TIMEOUT, t->call->within_s);
    if (t->call->gives_signs) {
        curl_easy_setopt(h, CURLOPT_LOW_SPEED_LIMIT, 1L);
        curl_easy_setopt(h, CURLOPT_LOW_SPEED_TIME, (long)SILENCE_S);
    }
    if (t->call->watch) {
        curl_easy_setopt(h, CURLOPT_NOPROGRESS, 0L);
        curl_easy_setopt(h, CURLOPT_XFERINFOFUNCTION, on_moved);
        curl_easy_setopt(h, CURLOPT_XFERINFODATA, t);
    }
    if (t->call->json) {
        curl_easy_setopt(h, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)t->call->json->len);
        curl_easy_setopt(h, CURLOPT_POSTFIELDS, t->call->json->data);
    }
    add_headers(t);
    return t->call->upload >= 0 ? add_upload(t, e) : 0;
}

static int failed(const struct transfer *t, CURLcode code, struct err *e) {
    if (t->too_large)
        return err_user(e, "bad_reply", "the answer of %s is too large to be one of ours",
                        t->remote->shown);
    return remote_failed(t->remote, code, t->why, e);
}

/* 1: it is over, well or not; 0: it goes on. */
static int look_for_end(const struct transfer *t, CURLcode *ret) {
    int left;
    for (CURLMsg *m; (m = curl_multi_info_read(t->remote->multi, &left));) {
        if (m->msg != CURLMSG_DONE || m->easy_handle != t->easy)
            continue;
        *ret = m->data.result;
        return 1;
    }
    return 0;
}

static int take_signal(const struct transfer *t) {
    struct signalfd_siginfo info;
    if (read(t->remote->signals, &info, sizeof info) != (ssize_t)sizeof info)
        return 0;
    return (int)info.ssi_signo;
}

static bool is_ready(int fd, short events) {
    struct pollfd p = {.fd = fd, .events = events};
    return fd >= 0 && poll(&p, 1, 0) > 0;
}

/* The descriptor that must take output before the sink takes more, or -1. */
static int waits_for(const struct remote_sink *sink) {
    return sink && sink->wait_fd ? sink->wait_fd(sink->arg) : -1;
}

/* Waits for the network, a signal, whoever takes the output or gives input. 1: leave. */
static int wait_for_more(struct transfer *t, struct err *e) {
    const struct remote_sink *sink = t->call->sink;
    int out = waits_for(sink);
    int in = sink && sink->input_fd ? sink->input_fd(sink->arg) : -1;
    const struct curl_waitfd all[] = {{.fd = t->remote->signals, .events = CURL_WAIT_POLLIN},
                                      {.fd = out, .events = CURL_WAIT_POLLOUT},
                                      {.fd = in, .events = CURL_WAIT_POLLIN}};
    struct curl_waitfd more[3];
    unsigned n = 0;
    for (size_t i = 0; i < 3; i++)
        if (all[i].fd >= 0)
            more[n++] = all[i];
    CURLMcode code = curl_multi_poll(t->remote->multi, more, n, 1000, NULL);
    if (code != CURLM_OK)
        return err_set(e, EIO, "wait for the server: %s", curl_multi_strerror(code));
    /* Asked of the kernel itself: libcurl does not report an error on another's descriptor. */
    if (is_ready(t->remote->signals, POLLIN)) {
        int signal = take_signal(t);
        if (signal && !(sink && sink->on_signal && sink->on_signal(sink->arg, signal))) {
            t->reply->signal = signal;
            return 1;
        }
    }
    if (!sink)
        return 0;
    if (is_ready(out, POLLOUT) && sink->on_ready(sink->arg, e) < 0)
        return -1;
    if (is_ready(in, POLLIN) && sink->on_input(sink->arg, e) < 0)
        return -1;
    return sink->is_over(sink->arg);
}

static int transfer_run(struct transfer *t, struct err *e) {
    const struct remote_sink *sink = t->call->sink;
    for (;;) {
        int running;
        CURLcode result;
        CURLMcode code = curl_multi_perform(t->remote->multi, &running);
        if (code != CURLM_OK)
            return err_set(e, EIO, "talk to the server: %s", curl_multi_strerror(code));
        if (look_for_end(t, &result)) {
            long status = 0;
            curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
            /* A server that refuses an upload need not read it to its end. */
            bool refused = result == CURLE_SEND_ERROR && status >= 400;
            if (result != CURLE_OK && !refused && !(sink && sink->is_over(sink->arg)))
                return failed(t, result, e);
            t->reply->status = (int)status;
            /* What the sink has taken and not passed on yet. */
            while (waits_for(sink) >= 0) {
                int rc = wait_for_more(t, e);
                if (rc)
                    return rc < 0 ? -1 : 0;
            }
            return 0;
        }
        int rc = wait_for_more(t, e);
        if (rc)
            return rc < 0 ? -1 : 0;
        if (t->paused && waits_for(sink) < 0) {
            t->paused = false;
            curl_easy_pause(t->easy, CURLPAUSE_CONT);
        }
    }
}

int remote_do(struct remote *r, const struct remote_call *c, struct remote_reply *ret,
              struct err *e) {
    struct transfer t = {.remote = r, .call = c, .reply = ret, .easy = curl_easy_init()};
    if (!t.easy)
        return err_set(e, ENOMEM, "libcurl: out of memory");
    int rc = set_up_call(&t, e);
    if (rc == 0 && curl_multi_add_handle(r->multi, t.easy) != CURLM_OK)
        rc = err_set(e, ENOMEM, "libcurl: out of memory");
    if (rc == 0) {
        rc = transfer_run(&t, e);
        curl_multi_remove_handle(r->multi, t.easy);
    }
    curl_mime_free(t.form);
    curl_slist_free_all(t.headers);
    curl_easy_cleanup(t.easy);
    return rc;
}

/* ---- refusals ---- */

static void put_member(struct buf *to, const json_t *object, const char *key,
                       const char *otherwise) {
    const char *text = json_string_value(json_object_get(object, key));
    buf_clear(to);
    buf_adds(to, text ? text : otherwise);
}

/* What to do about it at a command line, where that is not what the server says; or NULL. */
static const char *remediation_here(const char *kind) {
    static const struct {
        const char *kind, *remediation;
    } others[] = {
        {"no_key", "put the key into CLOCHE_API_KEY, or into a file for --key-file"},
        {"bad_key", "check CLOCHE_API_KEY, or the file of --key-file"},
        {"unknown_profile", "`cloche status` lists them; auto picks one"},
        {"limit_too_high", "ask for less, or raise the maximum in the server's configuration"},
        {"no_such_path", "`cloche sandbox ls ID` lists what there is"},
        {"no_such_kernel", "leave --kernel out for the default one"},
        {"sandbox_paused", "`cloche sandbox resume ID` lets it go on"},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(others[i].kind, kind) == 0)
            return others[i].remediation;
    return NULL;
}

void remote_error(const json_t *error, struct client_outcome *ret) {
    put_member(&ret->kind, error, "code", "internal");
    put_member(&ret->message, error, "message", "the server did not say why");
    put_member(&ret->remediation, error, "remediation", "");
    const char *here = remediation_here(ret->kind.data);
    if (here) {
        buf_clear(&ret->remediation);
        buf_adds(&ret->remediation, here);
    }
    ret->retryable = json_is_true(json_object_get(error, "retryable"));
    ret->end = CLIENT_REFUSED;
}

/* ": body.limits.pids: Input should be …" of the first field that is wrong. */
static void add_field(const json_t *detail, struct buf *to) {
    const json_t *first = json_array_get(detail, 0), *part;
    const char *text = json_string_value(json_object_get(first, "msg"));
    size_t i;
    if (!text)
        return;
    buf_clear(to);
    buf_adds(to, "the server refused the request: ");
    json_array_foreach(json_object_get(first, "loc"), i, part) {
        if (json_is_string(part))
            buf_addf(to, "%s%s", i ? "." : "", json_string_value(part));
        else
            buf_addf(to, ".%" JSON_INTEGER_FORMAT, json_integer_value(part));
    }
    buf_addf(to, ": %s", text);
}

void remote_refused(const struct remote_reply *reply, struct client_outcome *ret) {
    struct err ignored;
    json_auto_t *root = NULL;
    if (json_read(reply->body.data, reply->body.len, JSON_DEPTH_MAX, &root, &ignored) == 0 &&
        json_is_object(json_object_get(root, "error"))) {
        remote_error(json_object_get(root, "error"), ret);
        add_field(json_object_get(root, "detail"), &ret->message);
        return;
    }
    buf_adds(&ret->kind, "bad_reply");
    buf_addf(&ret->message, "the answer has status %d and is none of cloche's", reply->status);
    buf_adds(&ret->remediation, "check the URL, and what stands between");
    ret->retryable = reply->status >= 500;
    ret->end = CLIENT_REFUSED;
}
