/* See flight.h. */

#include "remote/mcp/flight.h"

#include "base/fd.h"
#include "remote/net/server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* SECURITY: a server may send without end. */
#define BODY_MAX     (64u << 20)
#define ERR_BODY_MAX (64u << 10)

static int status_of(CURL *easy) {
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    return (int)status;
}

static size_t flight_on_body(char *data, size_t one, size_t len, void *arg) {
    struct flight *f = arg;
    (void)one;
    bool good = status_of(f->easy) / 100 == 2;
    if (good && f->is_sse && f->kind->on_stream) {
        if (f->kind->on_stream(f, data, len))
            return f->too_large ? 0 : len;
        f->paused = true;
        return CURL_WRITEFUNC_PAUSE;
    }
    if (good && f->to >= 0) {
        struct err ignored;
        return fd_write_all(f->to, data, len, &ignored) < 0 ? 0 : len;
    }
    if (f->reply.body.len + len > (good ? BODY_MAX : ERR_BODY_MAX)) {
        f->too_large = true;
        return 0;
    }
    buf_add(&f->reply.body, data, len);
    return len;
}

static size_t flight_on_upload(char *to, size_t one, size_t len, void *arg) {
    struct flight *f = arg;
    ssize_t n = read(f->from, to, one * len);
    return n < 0 ? CURL_READFUNC_ABORT : (size_t)n;
}

/* libcurl begins again where a connection that it had kept was closed meanwhile. */
static int flight_on_seek(void *arg, curl_off_t to, int origin) {
    const struct flight *f = arg;
    return lseek(f->from, to, origin) < 0 ? CURL_SEEKFUNC_CANTSEEK : CURL_SEEKFUNC_OK;
}

static size_t flight_on_header(char *line, size_t one, size_t len, void *arg) {
    static const char type[] = "content-type:";
    struct flight *f = arg;
    size_t text = len;
    while (text && (line[text - 1] == '\n' || line[text - 1] == '\r'))
        text--;
    if (text > sizeof type && strncasecmp(line, type, sizeof type - 1) == 0) {
        const char *value = line + sizeof type - 1;
        while (*value == ' ')
            value++;
        f->is_sse = strncasecmp(value, "text/event-stream", 17) == 0;
    }
    if (f->kind->on_header)
        f->kind->on_header(f, line, text);
    return one * len;
}

void flight_header(struct flight *f, const char *line) {
    struct curl_slist *more = curl_slist_append(f->headers, line);
    if (more)
        f->headers = more;
}

void *flight_new(size_t size, const struct flight_kind *kind) {
    struct flight *f = xcalloc(1, size);
    f->kind = kind;
    f->sent = f->reply.body = (struct buf)BUF_INIT;
    f->from = f->to = -1;
    return f;
}

void flight_free(struct flight *f) {
    if (f->kind->on_free)
        f->kind->on_free(f);
    if (f->easy)
        curl_easy_cleanup(f->easy);
    curl_slist_free_all(f->headers);
    buf_done(&f->sent);
    fd_close(&f->from);
    fd_close(&f->to);
    remote_reply_done(&f->reply);
    free(f);
}

static void flight_set_up(struct flight *f, const char *method, const char *path) {
    const struct remote *r = f->of->remote;
    CURL *h = f->easy;
    AUTO_BUF url = BUF_INIT;
    buf_addf(&url, "%s%s", r->base, path);
    remote_prepare(r, h);
    flight_header(f, "Expect:");
    if (r->key)
        flight_header(f, r->key);
    curl_easy_setopt(h, CURLOPT_URL, url.data);
    curl_easy_setopt(h, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(h, CURLOPT_CUSTOMREQUEST, method);
    curl_easy_setopt(h, CURLOPT_HTTPHEADER, f->headers);
    curl_easy_setopt(h, CURLOPT_ERRORBUFFER, f->why);
    curl_easy_setopt(h, CURLOPT_PRIVATE, f);
    curl_easy_setopt(h, CURLOPT_HEADERFUNCTION, flight_on_header);
    curl_easy_setopt(h, CURLOPT_HEADERDATA, f);
    curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, flight_on_body);
    curl_easy_setopt(h, CURLOPT_WRITEDATA, f);
    struct stat st;
    if (f->from >= 0 && fstat(f->from, &st) == 0) {
        curl_easy_setopt(h, CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(h, CURLOPT_INFILESIZE_LARGE, (curl_off_t)st.st_size);
        curl_easy_setopt(h, CURLOPT_READFUNCTION, flight_on_upload);
        curl_easy_setopt(h, CURLOPT_READDATA, f);
        curl_easy_setopt(h, CURLOPT_SEEKFUNCTION, flight_on_seek);
        curl_easy_setopt(h, CURLOPT_SEEKDATA, f);
    } else if (strcmp(method, "POST") == 0) {
        curl_easy_setopt(h, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)f->sent.len);
        curl_easy_setopt(h, CURLOPT_POSTFIELDS, f->sent.data);
    }
}

int flight_start(struct flights *all, struct flight *f, const char *method, const char *path,
                 struct err *e) {
    f->of = all;
    f->easy = curl_easy_init();
    if (f->easy)
        flight_set_up(f, method, path);
    if (!f->easy || curl_multi_add_handle(all->remote->multi, f->easy) != CURLM_OK) {
        flight_free(f);
        return err_set(e, ENOMEM, "libcurl: out of memory");
    }
    f->next = all->list;
    all->list = f;
    all->n++;
    return 0;
}

static void take_out(struct flight *f) {
    struct flight **at = &f->of->list;
    while (*at != f)
        at = &(*at)->next;
    *at = f->next;
    f->of->n--;
    curl_multi_remove_handle(f->of->remote->multi, f->easy);
}

void flight_drop(struct flight *f) {
    take_out(f);
    flight_free(f);
}

void flights_drop_all(struct flights *all) {
    while (all->list)
        flight_drop(all->list);
}

void flights_resume(struct flights *all) {
    for (struct flight *f = all->list; f; f = f->next) {
        if (f->paused) {
            f->paused = false;
            curl_easy_pause(f->easy, CURLPAUSE_CONT);
        }
    }
}

static void end(struct flight *f, CURLcode result) {
    struct err e;
    f->reply.status = status_of(f->easy);
    /* A server that refuses a body need not read it to its end. */
    bool refused = result == CURLE_SEND_ERROR && f->reply.status >= 400;
    bool good = result == CURLE_OK || refused;
    if (f->too_large)
        err_user(&e, "bad_reply", "the answer of %s is too large to be one of ours",
                 f->of->remote->shown);
    else if (!good)
        remote_failed(f->of->remote, result, f->why, &e);
    take_out(f);
    f->kind->on_end(f, good && !f->too_large ? NULL : &e);
    flight_free(f);
}

int flights_step(struct flights *all, struct err *e) {
    int running, left;
    CURLMcode code = curl_multi_perform(all->remote->multi, &running);
    if (code != CURLM_OK)
        return err_set(e, EIO, "talk to the server: %s", curl_multi_strerror(code));
    for (CURLMsg *m; (m = curl_multi_info_read(all->remote->multi, &left));) {
        char *of = NULL;
        if (m->msg != CURLMSG_DONE)
            continue;
        CURLcode result = m->data.result;
        curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &of);
        end((struct flight *)(void *)of, result);
    }
    return 0;
}
