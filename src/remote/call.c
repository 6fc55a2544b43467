/* See call.h.
 *
 * The multi interface with one transfer in it: between two steps of libcurl we look at our signals
 * and at whoever takes the output. A signal, or a sink that is over, takes the transfer out, which
 * closes its connection: the server then ends the program. */

#include "remote/call.h"

#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "cli/client.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define CONNECT_S    15
#define SILENCE_S    60 /* a stream gives a sign of life every 10 s */
#define KEY_MAX      512
#define BODY_MAX     (1u << 30)
#define ERR_BODY_MAX (64u << 10)

struct remote {
    CURLM *multi;
    char *base;      /* owned: what stands in front of a path */
    char *unix_path; /* owned, or NULL */
    char *shown;     /* owned: as the user wrote it */
    char *key;       /* owned: the header, or NULL */
    bool is_local;
    int signals;
};

/* ---- where and who ---- */

static int bad_url(const char *url, const char *why, struct err *e) {
    char quoted[200];
    return err_user(e, "bad_value",
                    "--server is %s: %s; it must be http://HOST:PORT, https://HOST or unix:PATH",
                    log_quote(url, quoted, sizeof quoted), why);
}

static bool is_local_name(const char *host, size_t len) {
    static const char *const names[] = {"localhost", "[::1]"};
    for (size_t i = 0; i < 2; i++)
        if (len == strlen(names[i]) && strncasecmp(host, names[i], len) == 0)
            return true;
    return len > 4 && strncmp(host, "127.", 4) == 0;
}

static int set_unix(struct remote *r, const char *url, struct err *e) {
    const char *path = url + strlen("unix:");
    if (strncmp(path, "//", 2) == 0)
        path += 2;
    if (*path == '\0')
        return bad_url(url, "it names no path", e);
    if (strlen(path) >= sizeof((struct sockaddr_un *)0)->sun_path)
        return bad_url(url, "the path is too long for a socket", e);
    r->unix_path = xstrdup(path);
    r->base = xstrdup("http://localhost");
    r->is_local = true;
    return 0;
}

static int set_url(struct remote *r, const char *url, struct err *e) {
    r->shown = xstrdup(url);
    if (strncasecmp(url, "unix:", 5) == 0)
        return set_unix(r, url, e);
    size_t scheme = strncasecmp(url, "http://", 7) == 0    ? 7
                    : strncasecmp(url, "https://", 8) == 0 ? 8
                                                           : 0;
    if (!scheme)
        return bad_url(url, "the scheme is missing or another one", e);
    size_t host = strcspn(url + scheme, "/?#");
    if (memchr(url + scheme, '@', host))
        return bad_url(url, "a name and password have no place in it (see --key-file)", e);
    if (strpbrk(url, "?# \t\r\n") || host == 0)
        return bad_url(url, host ? "it has more than a path behind the host" : "it has no host", e);
    size_t len = strlen(url);
    while (len > scheme && url[len - 1] == '/')
        len--;
    r->base = strndup(url, len);
    const char *name = url + scheme;
    r->is_local = is_local_name(name, *name == '[' ? strcspn(name, "]") + 1 : strcspn(name, ":/"));
    return r->base ? 0 : err_set(e, ENOMEM, "out of memory");
}

/* SECURITY: a key on the command line would be in every list of processes. */
static int read_key(const char *file, char *key, struct err *e) {
    const char *env = getenv("CLOCHE_API_KEY");
    AUTO_FD fd = -1;
    if (!file) {
        snprintf(key, KEY_MAX, "%s", env ? env : "");
        return 0;
    }
    fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return err_user(e, errno == ENOENT ? "no_such_file" : "not_readable", "--key-file %s: %s",
                        file, strerror(errno));
    if (fd_read_all(fd, key, KEY_MAX, NULL, e) < 0)
        return err_user(e, "bad_value", "--key-file %s: %s", file,
                        e->code == EFBIG ? "it is longer than any key" : e->text);
    key[strcspn(key, "\r\n")] = '\0';
    return *key ? 0 : err_user(e, "bad_value", "--key-file %s: its first line is empty", file);
}

static int set_key(struct remote *r, const char *file, struct err *e) {
    char key[KEY_MAX];
    if (read_key(file, key, e) < 0)
        return -1;
    for (const char *p = key; *p; p++)
        if (*p <= ' ' || *p > '~')
            return err_user(e, "bad_value", "%s holds no key: it has blanks or other characters",
                            file ? file : "CLOCHE_API_KEY");
    if (!*key)
        return 0;
    struct buf b = BUF_INIT;
    buf_addf(&b, "Authorization: Bearer %s", key);
    r->key = buf_take(&b);
    explicit_bzero(key, sizeof key);
    return 0;
}

int remote_open(const char *url, const char *key_file, int signals, struct remote **ret,
                struct err *e) {
    AUTO_REMOTE r = xcalloc(1, sizeof *r);
    r->signals = signals;
    if (set_url(r, url, e) < 0 || set_key(r, key_file, e) < 0)
        return -1;
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK || !(r->multi = curl_multi_init()))
        return err_set(e, ENOMEM, "libcurl does not start");
    *ret = r;
    r = NULL;
    return 0;
}

void remote_free(struct remote *r) {
    if (!r)
        return;
    if (r->multi)
        curl_multi_cleanup(r->multi);
    free(r->base);
    free(r->unix_path);
    free(r->shown);
    free(r->key);
    free(r);
}

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

static size_t on_body(char *data, size_t one, size_t len, void *arg) {
    struct transfer *t = arg;
    (void)one;
    bool good = is_success(t->easy);
    if (good && t->call->sink) {
        if (t->call->sink->take(t->call->sink->arg, data, len))
            return len;
        t->paused = true;
        return CURL_WRITEFUNC_PAUSE;
    }
    if (t->reply->body.len + len > (good ? BODY_MAX : ERR_BODY_MAX)) {
        t->too_large = true;
        return 0;
    }
    buf_add(&t->reply->body, data, len);
    return len;
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

static int add_form(struct transfer *t, struct err *e) {
    struct stat st;
    if (fstat(t->call->upload, &st) < 0)
        return err_sys(e, "fstat");
    t->form = curl_mime_init(t->easy);
    curl_mimepart *part = curl_mime_addpart(t->form);
    curl_mime_name(part, "file");
    curl_mime_filename(part, t->call->upload_name);
    curl_mime_type(part, "application/octet-stream");
    curl_mime_data_cb(part, st.st_size, on_upload, on_upload_seek, NULL, t);
    curl_easy_setopt(t->easy, CURLOPT_MIMEPOST, t->form);
    return 0;
}

static int set_up(struct transfer *t, struct err *e) {
    const struct remote *r = t->remote;
    CURL *h = t->easy;
    AUTO_BUF url = BUF_INIT;
    buf_addf(&url, "%s%s", r->base, t->call->path);
    curl_easy_setopt(h, CURLOPT_URL, url.data);
    curl_easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(h, CURLOPT_CUSTOMREQUEST, t->call->method);
    curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(h, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(h, CURLOPT_ERRORBUFFER, t->why);
    curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(h, CURLOPT_WRITEDATA, t);
    curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_S);
    curl_easy_setopt(h, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(h, CURLOPT_USERAGENT, "cloche/" CLOCHE_VERSION);
    if (t->call->gives_signs) {
        curl_easy_setopt(h, CURLOPT_LOW_SPEED_LIMIT, 1L);
        curl_easy_setopt(h, CURLOPT_LOW_SPEED_TIME, (long)SILENCE_S);
    }
    const char *trusted = getenv("SSL_CERT_FILE"); /* libcurl itself looks only at what it was
                                                      built with */
    if (trusted && *trusted)
        curl_easy_setopt(h, CURLOPT_CAINFO, trusted);
    if (r->is_local)
        curl_easy_setopt(h, CURLOPT_PROXY, "");
    if (r->unix_path)
        curl_easy_setopt(h, CURLOPT_UNIX_SOCKET_PATH, r->unix_path);
    add_header(t, "Expect:");
    if (r->key)
        add_header(t, r->key);
    if (t->call->json) {
        add_header(t, "Content-Type: application/json");
        curl_easy_setopt(h, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)t->call->json->len);
        curl_easy_setopt(h, CURLOPT_POSTFIELDS, t->call->json->data);
    }
    curl_easy_setopt(h, CURLOPT_HTTPHEADER, t->headers);
    return t->call->upload >= 0 ? add_form(t, e) : 0;
}

static int failed(const struct transfer *t, CURLcode code, struct err *e) {
    const char *why = t->why[0] ? t->why : curl_easy_strerror(code);
    const char *where = t->remote->shown;
    if (t->too_large)
        return err_user(e, "bad_reply", "the answer of %s is too large to be one of ours", where);
    switch ((int)code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_PROXY:
        return err_user(e, "no_server", "no server answers at %s: %s", where, why);
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
        return err_user(e, "bad_certificate", "%s is not who it says: %s", where, why);
    case CURLE_URL_MALFORMAT:
        return bad_url(where, why, e);
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_UNSUPPORTED_PROTOCOL:
        return err_user(e, "bad_reply", "what answers at %s is no cloche server: %s", where, why);
    default:
        return err_user(e, "engine_gone", "the server at %s went away: %s", where, why);
    }
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

/* Waits for the network, a signal, or whoever takes the output. 1: leave. */
static int wait_for_more(struct transfer *t, struct err *e) {
    const struct remote_sink *sink = t->call->sink;
    struct curl_waitfd more[2];
    unsigned n = 0;
    int out = sink ? sink->wait_fd(sink->arg) : -1;
    if (t->remote->signals >= 0)
        more[n++] = (struct curl_waitfd){.fd = t->remote->signals, .events = CURL_WAIT_POLLIN};
    if (out >= 0)
        more[n++] = (struct curl_waitfd){.fd = out, .events = CURL_WAIT_POLLOUT};
    CURLMcode code = curl_multi_poll(t->remote->multi, more, n, 1000, NULL);
    if (code != CURLM_OK)
        return err_set(e, EIO, "wait for the server: %s", curl_multi_strerror(code));
    if (t->remote->signals >= 0 && more[0].revents) {
        t->reply->signal = take_signal(t);
        if (t->reply->signal)
            return 1;
    }
    /* Asked of the kernel itself: libcurl does not report an error on another's descriptor. */
    struct pollfd p = {.fd = out, .events = POLLOUT};
    if (out >= 0 && poll(&p, 1, 0) > 0 && sink->on_ready(sink->arg, e) < 0)
        return -1;
    return sink && sink->is_over(sink->arg);
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
            if (result != CURLE_OK && !(sink && sink->is_over(sink->arg)))
                return failed(t, result, e);
            long status;
            curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
            t->reply->status = (int)status;
            /* What the sink has taken and not passed on yet. */
            while (sink && sink->wait_fd(sink->arg) >= 0) {
                int rc = wait_for_more(t, e);
                if (rc)
                    return rc < 0 ? -1 : 0;
            }
            return 0;
        }
        int rc = wait_for_more(t, e);
        if (rc)
            return rc < 0 ? -1 : 0;
        if (t->paused && sink->wait_fd(sink->arg) < 0) {
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
    int rc = set_up(&t, e);
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

static void put(struct buf *to, const json_t *object, const char *key, const char *otherwise) {
    const char *text = json_string_value(json_object_get(object, key));
    buf_clear(to);
    buf_adds(to, text ? text : otherwise);
}

void remote_error(const json_t *error, struct client_outcome *ret) {
    put(&ret->kind, error, "code", "internal");
    put(&ret->message, error, "message", "the server did not say why");
    put(&ret->remediation, error, "remediation", "");
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
