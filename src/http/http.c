/* See http.h. libmicrohttpd runs in its external epoll mode: we accept, it reads and writes when
 * our loop says that its epoll descriptor is ready. http_conn.c has the connections, and notices
 * clients who leave.
 *
 * The library's own timeout is for silence only; a client that sends a byte now and then is ended
 * by the timer of its connection, which runs until the headers of the next request are whole, and
 * in steps while a body comes. */

#include "http/http.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "http/http_accept.h"
#include "http/http_body.h"
#include "http/http_check.h"
#include "http/http_conn.h"
#include "http/http_held.h"
#include "http/http_read.h"
#include "http/http_reply.h"
#include "http/http_turn.h"
#include "http/tunnel.h"
#include "http/ws_internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <unistd.h>

#define CONN_MEMORY (64u << 10) /* headers and buffers of one connection */

#define RUNS 8 /* of the library, one after the other in its share of a turn */

/* It reads a buffer of each connection, and then wants to be called again for what is left. */
static void run_library(struct http *h) {
    unsigned long long ms = 0;
    bool is_waiting = true;
    http_read_begin(h);
    http_turn_begin(h);
    for (unsigned n = 0; n < RUNS && is_waiting && ms == 0 && (n == 0 || http_turn_has_room(h));
         n++) {
        MHD_run(h->daemon);
        is_waiting = MHD_get_timeout(h->daemon, &ms) == MHD_YES;
    }
    http_turn_end(h);
    http_read_end();
    if (is_waiting)
        loop_timer_in_ms(h->o.loop, &h->timer, ms);
    else
        loop_timer_stop(h->o.loop, &h->timer);
}

static void on_library_ready(struct watch *w, uint32_t events) {
    (void)events;
    run_library(w->arg);
}

static void http_on_timer(struct timer *t) {
    run_library(t->arg);
}

static void on_soon(struct deferred *d) {
    run_library(d->arg);
}

void http_soon(struct http *h) {
    loop_defer(h->o.loop, &h->run);
}

/* ---- requests ---- */

void http_req_free(struct http_req *r) {
    http_body_done(r);
    for (unsigned i = 0; i < r->nheaders; i++) {
        free(r->headers[i].name);
        free(r->headers[i].value);
    }
    free(r->headers);
    if (r->response)
        MHD_destroy_response(r->response);
    http_let_go(r);
    ws_free(r->ws);
    tunnel_free(r->tunnel);
    free(r->path);
    free(r->raw_path);
    free(r->query);
    free(r->authority);
    free(r);
}

/* The parameters stay where they are: behind the path, cut apart and decoded in place. NULL, or
 * what is wrong. */
static const char *split_query(struct http_req *r, char *at) {
    while (at && *at) {
        char *end = at + strcspn(at, "&"), *next = *end ? end + 1 : end;
        *end = '\0';
        char *value = strchr(at, '=');
        if (value)
            *value++ = '\0';
        else
            value = end;
        if (r->nparams == MAX_PARAMS)
            return "there are more than 32 query parameters";
        if (!http_decode(at, true) || !http_decode(value, true))
            return "the query holds a bad escape or a control byte";
        r->params[r->nparams++] = (struct param){at, value};
        at = next;
    }
    return NULL;
}

/* "http://host/path", as clients of a proxy send it, is "/path" (RFC 9112, 3.2.2); the host has to
 * be the one of the header. */
static void take_authority(struct http_req *r) {
    static const char scheme[] = "http://";
    if (strncasecmp(r->path, scheme, sizeof scheme - 1) != 0)
        return;
    const char *host = r->path + sizeof scheme - 1, *rest = host + strcspn(host, "/?");
    struct buf path = BUF_INIT;
    buf_addf(&path, "%s%s", *rest == '/' ? "" : "/", rest);
    r->authority = xstrndup(host, (size_t)(rest - host));
    free(r->path);
    r->path = buf_take(&path);
}

static const char *split_uri(struct http_req *r) {
    take_authority(r);
    char *query = strchr(r->path, '?');
    if (query) {
        *query++ = '\0';
        r->query = xstrdup(query);
    }
    const char *wrong = split_query(r, query);
    if (r->path[0] != '/')
        return "the path does not begin with a slash";
    if (strchr(r->path, '%'))
        r->raw_path = xstrdup(r->path);
    return http_decode(r->path, false) ? wrong : "the path holds a bad escape or a control byte";
}

/* The request line as it came, before the library would decode it. */
static void *on_uri(void *arg, const char *uri, struct MHD_Connection *mhd) {
    struct http *h = arg;
    struct http_req *r = xcalloc(1, sizeof *r);
    *r = (struct http_req){.http = h, .body = BUF_INIT, .out = BUF_INIT, .born_ns = now_ns()};
    r->rest.meter = &h->replies;
    r->path = xstrdup(uri);
    r->uri = uri;
    r->uri_len = strlen(uri);
    r->wrong = strchr(uri, ' ') ? "the path holds a space" : split_uri(r);
    /* The library is about to keep each parameter in the connection's memory; of very many it finds
     * no room even to refuse them, and says nothing. We have ours: for it there are none. */
    if (r->query)
        ((char *)(uintptr_t)uri)[r->uri_len - strlen(r->query)] = '\0';
    /* If the library gives up before the headers are whole, it says no word of this request again.
     */
    struct http_conn *c = http_conn_of(mhd);
    if (c->pending)
        http_req_free(c->pending);
    c->pending = r;
    return r;
}

static size_t leave_escaped(void *arg, struct MHD_Connection *mhd, char *s) {
    (void)arg, (void)mhd;
    return strlen(s);
}

static void on_completed(void *arg, struct MHD_Connection *mhd, void **context,
                         enum MHD_RequestTerminationCode code) {
    struct http *h = arg;
    struct http_req *r = *context;
    if (!r)
        return;
    *context = NULL;
    if (http_conn_of(mhd)->pending == r)
        http_conn_of(mhd)->pending = NULL;
    if (r->conn) {
        if (code != MHD_REQUEST_TERMINATED_COMPLETED_OK && r->phase != REQ_CUT && r->on_gone)
            r->on_gone(r);
        if (r->ws)
            ws_over(r->ws);
        if (r->tunnel)
            tunnel_over(r->tunnel);
        if (r->phase != REQ_NEW && h->o.on_finished)
            h->o.on_finished(h->o.arg, r);
        r->conn->req = NULL;
        if (!r->conn->leaves)
            http_wait(h, &r->conn->waiter);
        loop_timer_in_ms(h->o.loop, &r->conn->timer, h->o.idle_s * SECOND_MS);
        if (r->conn->half)
            http_conn_probe(r->conn);
        if (code != MHD_REQUEST_TERMINATED_COMPLETED_OK && !r->ws)
            http_conn_look(r->conn);
    }
    http_req_free(r);
}

static void refuse_request(struct http_req *r, const char *wrong) {
    AUTO_BUF json = BUF_INIT;
    http_refusal(wrong, &json);
    http_refuse(r, 400, "application/json", json.data, json.len);
}

static enum MHD_Result before_body(struct http_req *r) {
    struct http *h = r->http;
    r->on_hold = false;
    if (r->phase == REQ_CUT)
        return MHD_NO;
    /* Before a body has come, a reply also means that the connection ends: the body is not read. */
    if (r->response && http_has_body(r) && !http_body_drains(r))
        return http_queue(r);
    loop_timer_in_ms(h->o.loop, &r->conn->timer, h->o.body_step_s * SECOND_MS);
    http_conn_ack(r->conn);
    return MHD_YES;
}

static enum MHD_Result begin_request(struct http_req *r, struct MHD_Connection *mhd,
                                     const char *method, const char *version) {
    struct http *h = r->http;
    r->conn = http_conn_of(mhd);
    r->conn->req = r;
    r->conn->pending = NULL;
    r->phase = REQ_BODY;
    r->is_1_0 = strcmp(version, "HTTP/1.0") == 0;
    snprintf(r->method, sizeof r->method, "%s", method);
    r->conn->requests++;
    const char *wrong = r->conn->framing.cut ? http_check_framing(r) : NULL;
    if (!wrong)
        wrong = http_check_head(r, method, version);
    if (!wrong)
        wrong = http_check_framing(r);
    if (wrong) {
        refuse_request(r, wrong);
    } else {
        r->beginning = true;
        h->o.on_request(h->o.arg, r);
        r->beginning = false;
    }
    if (r->on_hold && !r->response && r->phase != REQ_CUT) {
        http_sleep(r);
        return MHD_YES;
    }
    return before_body(r);
}

static enum MHD_Result on_access(void *arg, struct MHD_Connection *mhd, const char *url,
                                 const char *method, const char *version, const char *data,
                                 size_t *len, void **context) {
    struct http_req *r = *context;
    (void)arg, (void)url;
    if (!r)
        return MHD_NO;
    if (r->phase == REQ_NEW && !http_may_begin(http_conn_of(mhd)))
        return MHD_YES;
    if (r->phase == REQ_NEW) {
        loop_timer_stop(r->http->o.loop, &http_conn_of(mhd)->timer);
        return begin_request(r, mhd, method, version);
    }
    if (r->on_hold) /* the library calls once more for the headers alone */
        return before_body(r);
    if (r->phase == REQ_CUT)
        return MHD_NO;
    if (*len && r->held_back) {
        http_sleep(r);
        return MHD_YES;
    }
    if (*len && !http_may_take_piece(r->conn))
        return MHD_YES; /* the library has it still, and calls again */
    if (*len) {
        http_body_data(r, data, *len);
        http_conn_ack(r->conn);
        *len = 0;
        return r->closing && r->thrown ? MHD_NO : MHD_YES;
    }
    if (!r->body_done) {
        /* The library takes this for the end of the body, and we do not: nothing may follow, but a
         * refusal may be told. */
        if (r->conn->framing.bodies < r->conn->requests && !(r->response && r->closing))
            return MHD_NO;
        loop_timer_stop(r->http->o.loop, &r->conn->timer);
        http_body_end(r);
    }
    if (r->phase == REQ_CUT)
        return MHD_NO;
    if (r->response)
        return http_queue(r);
    if (!r->queued) {
        r->phase = REQ_WAITING;
        http_sleep(r);
    }
    return MHD_YES;
}

/* ---- the server ---- */

__attribute__((format(printf, 2, 0))) static void on_log(void *arg, const char *fmt, va_list ap) {
    char text[300], quoted[400];
    (void)arg;
    vsnprintf(text, sizeof text, fmt, ap);
    log_debug("http says=%s", log_quote(text, quoted, sizeof quoted));
}

/* Of the descriptors that this process may have, a third: a request that goes to or comes from a
 * file takes one more, and a server that has none left loses its warden. */
static unsigned most_connections(unsigned wanted) {
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur / 3 >= wanted)
        return wanted;
    return (unsigned)(files.rlim_cur / 3);
}

int http_new(const struct http_options *o, struct http **ret, struct err *e) {
    struct http *h = xcalloc(1, sizeof *h);
    h->o = *o;
    h->o.max_connections = most_connections(o->max_connections);
    h->watch = (struct watch){.fd = -1, .fn = on_library_ready, .arg = h};
    h->timer = (struct timer){.fn = http_on_timer, .arg = h};
    h->run = (struct deferred){.fn = on_soon, .arg = h};
    http_held_init(h);
    http_turn_init(h);
    ws_init(h);
    h->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_ALLOW_UPGRADE | MHD_USE_NO_LISTEN_SOCKET |
            MHD_USE_ERROR_LOG,
        0, NULL, NULL, on_access, h, MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL,
        MHD_OPTION_STRICT_FOR_CLIENT, 0, MHD_OPTION_CONNECTION_LIMIT,
        o->max_connections + HTTP_LEAVING + 16, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONN_MEMORY, MHD_OPTION_CONNECTION_TIMEOUT, o->idle_s, MHD_OPTION_NOTIFY_CONNECTION,
        http_conn_notify, h, MHD_OPTION_NOTIFY_COMPLETED, on_completed, h,
        MHD_OPTION_URI_LOG_CALLBACK, on_uri, h, MHD_OPTION_UNESCAPE_CALLBACK, leave_escaped, NULL,
        MHD_OPTION_END);
    if (!h->daemon) {
        free(h);
        return err_set(e, ENOMEM, "libmicrohttpd does not start");
    }
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    *ret = h;
    loop_watch_epoll(o->loop, &h->watch, info->epoll_fd);
    return 0;
}

void http_drain(struct http *h) {
    h->draining = true;
    http_accept_no_more(h);
    ws_drain(h);
    tunnel_drain(h);
}

/* ---- what handlers ask ---- */

const char *http_method(const struct http_req *r) {
    return r->method;
}
const char *http_path(const struct http_req *r) {
    return r->path;
}
const char *http_raw_path(const struct http_req *r) {
    return r->raw_path ? r->raw_path : r->path;
}
const char *http_raw_query(const struct http_req *r) {
    return r->query;
}
const char *http_header(const struct http_req *r, const char *name) {
    return MHD_lookup_connection_value(r->conn->mhd, MHD_HEADER_KIND, name);
}

struct each_header {
    http_header_fn *fn;
    void *arg;
};

static enum MHD_Result http_on_header(void *arg, enum MHD_ValueKind kind, const char *name,
                                      const char *value) {
    const struct each_header *e = arg;
    (void)kind;
    e->fn(e->arg, name, value ? value : "");
    return MHD_YES;
}

void http_each_header(const struct http_req *r, http_header_fn *fn, void *arg) {
    struct each_header e = {fn, arg};
    MHD_get_connection_values(r->conn->mhd, MHD_HEADER_KIND, http_on_header, &e);
}

bool http_has_body(const struct http_req *r) {
    const char *len = http_header(r, MHD_HTTP_HEADER_CONTENT_LENGTH);
    return (len && strspn(len, "0") != strlen(len)) ||
           http_header(r, MHD_HTTP_HEADER_TRANSFER_ENCODING);
}

const char *http_query(const struct http_req *r, const char *name) {
    for (unsigned i = 0; i < r->nparams; i++) {
        if (strcmp(r->params[i].name, name) == 0)
            return r->params[i].value;
    }
    return NULL;
}

bool http_query_at(const struct http_req *r, unsigned i, const char **ret_name,
                   const char **ret_value) {
    if (i >= r->nparams)
        return false;
    *ret_name = r->params[i].name;
    *ret_value = r->params[i].value;
    return true;
}

bool http_is_unix(const struct http_req *r) {
    return r->conn->is_unix;
}
const char *http_door(const struct http_req *r) {
    return r->conn->door;
}
uint64_t http_born_ns(const struct http_req *r) {
    return r->born_ns;
}
void http_set_user(struct http_req *r, void *user) {
    r->user = user;
}
void *http_user(const struct http_req *r) {
    return r->user;
}
void http_set_guest(struct http_req *r, void *guest) {
    r->guest = guest;
}
void *http_guest(const struct http_req *r) {
    return r->guest;
}
int http_status(const struct http_req *r) {
    return r->status;
}
const char *http_reason(int status) {
    return MHD_get_reason_phrase_for((unsigned)status);
}
uint64_t http_bytes_in(const struct http_req *r) {
    return r->bytes_in;
}
uint64_t http_bytes_out(const struct http_req *r) {
    return r->bytes_out;
}
