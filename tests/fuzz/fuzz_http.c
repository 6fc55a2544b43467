/* Any bytes as what a client sends, to the real adapter and its library: heads, chunks, forms; and
 * after a W and a good handshake, frames. What comes back is a row of whole replies, and the
 * handler is called in an order that makes sense. */

#include "http/http.h"
#include "http/ws.h"

#include "base/fd.h"
#include "base/num.h"
#include "http/ws_handshake.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BODY_MAX  4096
#define INPUT_MAX 100000 /* what a socket takes at once */

struct world {
    struct loop *loop;
    struct http *http;
    struct sockaddr_un name;
    socklen_t name_len;
    struct watch watch; /* of the client */
    struct buf got;
    unsigned begun, finished, opened, closed;
};

static void must(bool holds) {
    if (!holds)
        abort();
}

/* ---- the handler ---- */

static void answer(struct http_req *r) {
    must(http_body(r)->len <= BODY_MAX);
    http_reply(r, 200, "text/plain", "ok", 2);
}

static void too_large(struct http_req *r) {
    http_reply(r, 413, "text/plain", "much", 4);
}

static bool piece(struct http_req *r, const struct form_part *p) {
    (void)r;
    must(p->name != NULL && (p->data != NULL || p->len == 0));
    return memchr(p->data, '!', p->len) == NULL || (answer(r), false);
}

/* ---- a WebSocket that says everything back ---- */

struct echo {
    struct world *world;
    struct ws *ws;
};

static void on_text(void *arg, const char *text, size_t len) {
    struct echo *echo = arg;
    must(len <= WS_MESSAGE_MAX);
    ws_send_text(echo->ws, text, len);
    if (len == 3)
        ws_close(echo->ws, WS_NORMAL, "three");
}

static void on_binary(void *arg, const void *data, size_t len) {
    struct echo *echo = arg;
    must(data != NULL);
    ws_hold(echo->ws, len > 100);
    ws_send_text(echo->ws, "b", 1);
}

static void on_closed(void *arg) {
    struct echo *echo = arg;
    echo->world->closed++;
}

static void open_echo(struct world *w, struct http_req *r) {
    int status = 0;
    if (ws_wrong(r, &status)) {
        http_reply(r, status, "text/plain", "no", 2);
        return;
    }
    struct echo *echo = xcalloc(1, sizeof *echo);
    const struct ws_options o = {
        .arg = echo, .on_text = on_text, .on_binary = on_binary, .on_closed = on_closed};
    echo->world = w;
    http_set_user(r, echo);
    echo->ws = ws_accept(r, &o);
    w->opened += echo->ws != NULL;
}

static void on_request(void *arg, struct http_req *r) {
    static const struct http_take whole = {BODY_MAX, answer, too_large, too_large};
    struct world *w = arg;
    const char *path = http_path(r);
    w->begun++;
    must(path[0] == '/' && strlen(http_method(r)) > 0);
    must(!http_query(r, "a") || http_raw_query(r));
    if (strcmp(path, "/now") == 0)
        answer(r);
    else if (strcmp(path, "/ws") == 0)
        open_echo(w, r);
    else if (strcmp(path, "/stream") == 0) {
        http_stream(r, 200, "text/plain");
        http_write(r, "abc", 3);
        http_end(r);
    } else if (strcmp(path, "/form") != 0 || http_take_form(r, piece, answer) < 0)
        http_take_body(r, &whole);
}

static void on_finished(void *arg, struct http_req *r) {
    struct world *w = arg;
    free(http_user(r));
    w->finished++;
}

/* ---- the client ---- */

static void on_reply(struct watch *watch, uint32_t events) {
    struct world *w = watch->arg;
    char data[8192];
    (void)events;
    ssize_t n = read(watch->fd, data, sizeof data);
    if (n > 0) {
        buf_add(&w->got, data, (size_t)n);
        return;
    }
    loop_unwatch(w->loop, watch);
    loop_stop(w->loop);
}

static struct world *begin(void) {
    static struct world w;
    struct err e;
    if (w.loop)
        return &w;
    const struct http_options o = {.arg = &w,
                                   .on_request = on_request,
                                   .on_finished = on_finished,
                                   .max_connections = 16,
                                   .bodies_max = 1u << 20,
                                   .header_s = 5,
                                   .idle_s = 5,
                                   .body_step_s = 5};
    struct http_options here = o;
    must(loop_new(&w.loop, &e) == 0);
    here.loop = w.loop;
    must(http_new(&here, &w.http, &e) == 0);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct sockaddr_un any = {.sun_family = AF_UNIX};
    must(bind(fd, (const struct sockaddr *)&any, sizeof any.sun_family) == 0); /* a free name */
    w.name_len = sizeof w.name;
    must(getsockname(fd, (struct sockaddr *)&w.name, &w.name_len) == 0 && listen(fd, 8) == 0);
    must(http_listen(w.http, &fd, NULL, &e) == 0);
    w.got = (struct buf)BUF_INIT;
    w.watch = (struct watch){.fd = -1, .fn = on_reply, .arg = &w};
    return &w;
}

/* The number in a head's Content-Length; -1: there is none. */
static long length_of(const char *head, const char *end) {
    const char *at = strcasestr(head, "\r\nContent-Length: ");
    return at && at < end ? strtol(at + 18, NULL, 10) : -1;
}

/* Each reply is whole; the last one may end with the connection, or be cut. */
static void check_replies(const struct buf *got) {
    for (const char *at = got->data, *end = got->data + got->len; at < end;) {
        must(strncmp(at, "HTTP/1.1 ", 9) == 0);
        const char *body = strstr(at, "\r\n\r\n");
        must(body != NULL);
        body += 4;
        long len = length_of(at, body);
        bool chunked = strcasestr(at, "Transfer-Encoding: chunked") != NULL;
        if (strncmp(at + 9, "101", 3) == 0)
            return; /* frames */
        if (strncmp(at + 9, "1", 1) == 0)
            len = 0;
        else if (len < 0 || chunked || strcasestr(at, "Connection: close"))
            return;
        must(body + len <= end || body == end); /* the reply to a HEAD has none */
        at = strncmp(body, "HTTP/1.1 ", 9) == 0 ? body : body + len;
    }
}

static const char handshake[] = "GET /ws HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n"
                                "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                                "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct world *w = begin();
    struct err e;
    if (size > INPUT_MAX)
        return 0;
    AUTO_FD fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    must(connect(fd, (const struct sockaddr *)&w->name, w->name_len) == 0);
    if (size > 0 && data[0] == 'W') {
        (void)!send(fd, handshake, sizeof handshake - 1, MSG_NOSIGNAL);
        data++, size--;
    }
    (void)!send(fd, data, size, MSG_NOSIGNAL);
    shutdown(fd, SHUT_WR);
    buf_clear(&w->got);
    must(loop_watch(w->loop, &w->watch, fd, EPOLLIN, &e) == 0);
    must(loop_run(w->loop, &e) == 0);
    check_replies(&w->got);
    must(w->closed == w->opened);
    must(w->finished >= w->begun); /* those that were refused are not begun */
    return 0;
}
