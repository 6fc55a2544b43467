/* See fetch.h. libcurl tells which descriptors it waits for, and for how long: these become watches
 * and a timer of ours. What ended is looked for after each of its steps, outside its callbacks. */

#include "fetch/fetch.h"

#include "base/buf.h"
#include "fetch/curl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#define CONNECT_S 10L
#define SLOW_BPS  1L  /* slower than this */
#define SLOW_S    60L /* for so long is no server any more */

struct fetcher {
    const struct curl *curl;
    struct loop *loop; /* borrowed */
    CURLM *multi;      /* owned */
    struct timer timer;
};

struct fetch {
    struct fetcher *by;
    CURL *easy;                 /* owned */
    struct curl_slist *headers; /* owned */
    struct fetch_request q;     /* its callbacks; the texts are libcurl's copies */
    bool stopped;               /* on_data wants no more */
};

/* A descriptor that libcurl waits for; owned by that. */
struct socket {
    struct fetcher *by;
    struct watch watch;
    struct deferred free_later;
};

/* ---- ended ---- */

static void fetch_free(struct fetch *x) {
    const struct curl *c = x->by->curl;
    if (x->easy) {
        c->curl_multi_remove_handle(x->by->multi, x->easy);
        c->curl_easy_cleanup(x->easy);
    }
    c->curl_slist_free_all(x->headers);
    free(x);
}

static void over(struct fetch *x, CURLcode how) {
    long status = 0;
    char why[100] = "";
    x->by->curl->curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &status);
    if (x->stopped)
        snprintf(why, sizeof why, "it was stopped");
    else if (how != CURLE_OK)
        snprintf(why, sizeof why, "%s", x->by->curl->curl_easy_strerror(how));
    else if (status / 100 != 2)
        snprintf(why, sizeof why, "the server answered with HTTP status %ld", status);
    void (*on_done)(void *arg, const char *why) = x->q.on_done;
    void *arg = x->q.arg;
    fetch_free(x);
    on_done(arg, *why ? why : NULL);
}

static void look_at_messages(struct fetcher *f) {
    int left;
    CURLMsg *m;
    while ((m = f->curl->curl_multi_info_read(f->multi, &left))) {
        struct fetch *x = NULL;
        CURLcode how = m->data.result;
        f->curl->curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&x);
        over(x, how);
    }
}

void fetch_cancel(struct fetch *x) {
    fetch_free(x);
}

/* ---- on our loop ---- */

static void step(struct fetcher *f, curl_socket_t fd, int what) {
    int running;
    f->curl->curl_multi_socket_action(f->multi, fd, what, &running);
    look_at_messages(f);
}

static void fetch_on_timer(struct timer *t) {
    step(t->arg, CURL_SOCKET_TIMEOUT, 0);
}

static int set_timer(CURLM *multi, long ms, void *arg) {
    struct fetcher *f = arg;
    (void)multi;
    if (ms < 0)
        loop_timer_stop(f->loop, &f->timer);
    else
        loop_timer_in_ms(f->loop, &f->timer, (uint64_t)ms);
    return 0;
}

static void on_socket(struct watch *w, uint32_t events) {
    const struct socket *s = w->arg;
    int what = (events & EPOLLIN ? CURL_CSELECT_IN : 0) |
               (events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
               (events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);
    step(s->by, w->fd, what);
}

static void free_socket(struct deferred *d) {
    free(d->arg);
}

static struct socket *new_socket(struct fetcher *f, curl_socket_t fd) {
    struct socket *s = xcalloc(1, sizeof *s);
    s->by = f;
    s->watch = (struct watch){.fd = -1, .fn = on_socket, .arg = s};
    s->free_later = (struct deferred){.fn = free_socket, .arg = s};
    f->curl->curl_multi_assign(f->multi, fd, s);
    return s;
}

static int set_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *of) {
    struct fetcher *f = arg;
    struct socket *s = of;
    struct err e;
    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        if (s) {
            loop_unwatch(f->loop, &s->watch);
            loop_defer(f->loop, &s->free_later);
        }
        return 0;
    }
    uint32_t events = (what & CURL_POLL_IN ? (uint32_t)EPOLLIN : 0) |
                      (what & CURL_POLL_OUT ? (uint32_t)EPOLLOUT : 0);
    if (!s)
        s = new_socket(f, fd);
    if (s->watch.fd < 0)
        return loop_watch(f->loop, &s->watch, fd, events, &e);
    return loop_rewatch(f->loop, &s->watch, events, &e);
}

int fetcher_new(struct loop *l, struct fetcher **ret, struct err *e) {
    const struct curl *c = curl_load(e);
    if (!c)
        return -1;
    CURLM *multi = c->curl_multi_init();
    if (!multi)
        return err_set(e, ENOMEM, "libcurl does not start");
    struct fetcher *f = xcalloc(1, sizeof *f);
    f->curl = c;
    f->loop = l;
    f->multi = multi;
    f->timer = (struct timer){.fn = fetch_on_timer, .arg = f};
    c->curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, set_socket);
    c->curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, f);
    c->curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, set_timer);
    c->curl_multi_setopt(multi, CURLMOPT_TIMERDATA, f);
    *ret = f;
    return 0;
}

/* ---- begun ---- */

static size_t fetch_on_body(char *data, size_t one, size_t len, void *arg) {
    struct fetch *x = arg;
    long status = 0;
    (void)one;
    x->by->curl->curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status / 100 != 2)
        return len; /* what it says about its error is nobody's */
    x->stopped = !x->q.on_data(x->q.arg, data, len);
    return x->stopped ? 0 : len;
}

static void add_header(struct fetch *x, const char *line) {
    struct curl_slist *more = x->by->curl->curl_slist_append(x->headers, line);
    if (more)
        x->headers = more;
}

static void set_up_transfer(struct fetch *x, const struct fetch_request *q) {
    const struct curl *c = x->by->curl;
    CURL *to = x->easy;
    c->curl_easy_setopt(to, CURLOPT_PRIVATE, x);
    c->curl_easy_setopt(to, CURLOPT_URL, q->url);
    c->curl_easy_setopt(to, CURLOPT_PROTOCOLS_STR, "http,https");
    c->curl_easy_setopt(to, CURLOPT_FOLLOWLOCATION,
                        0L); /* SECURITY: it was this URL that is allowed */
    c->curl_easy_setopt(to, CURLOPT_PROXY, "");
    c->curl_easy_setopt(to, CURLOPT_NOSIGNAL, 1L);
    c->curl_easy_setopt(to, CURLOPT_CONNECTTIMEOUT, CONNECT_S);
    c->curl_easy_setopt(to, CURLOPT_TIMEOUT, (long)q->timeout_s);
    c->curl_easy_setopt(to, CURLOPT_LOW_SPEED_LIMIT, SLOW_BPS);
    c->curl_easy_setopt(to, CURLOPT_LOW_SPEED_TIME, SLOW_S);
    c->curl_easy_setopt(to, CURLOPT_FORBID_REUSE, 1L);
    c->curl_easy_setopt(to, CURLOPT_USERAGENT, "cloche/" CLOCHE_VERSION);
    c->curl_easy_setopt(to, CURLOPT_WRITEFUNCTION, fetch_on_body);
    c->curl_easy_setopt(to, CURLOPT_WRITEDATA, x);
    if (q->body) {
        c->curl_easy_setopt(to, CURLOPT_COPYPOSTFIELDS, q->body);
        add_header(x, "Content-Type: application/json");
    }
    for (const char *const *h = q->headers; h && *h; h++)
        add_header(x, *h);
    c->curl_easy_setopt(to, CURLOPT_HTTPHEADER, x->headers);
}

int fetch_start(struct fetcher *f, const struct fetch_request *q, struct fetch **ret,
                struct err *e) {
    struct fetch *x = xcalloc(1, sizeof *x);
    x->by = f;
    x->q = *q;
    x->easy = f->curl->curl_easy_init();
    if (x->easy)
        set_up_transfer(x, q);
    if (!x->easy || f->curl->curl_multi_add_handle(f->multi, x->easy) != CURLM_OK) {
        fetch_free(x);
        return err_set(e, ENOMEM, "libcurl takes no request");
    }
    *ret = x;
    return 0;
}
