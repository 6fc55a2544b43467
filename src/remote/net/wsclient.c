/* See wsclient.h. */

#include "remote/net/wsclient.h"

#include "base/base64.h"
#include "base/clock.h"
#include "base/fd.h"
#include "remote/net/server.h"

#include <errno.h>
#include <nettle/sha1.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <wslay/wslay.h>

#define ANSWER_MS   30000
#define HEAD_MAX    (64u << 10)
#define MESSAGE_MAX (16u << 20)
#define KEY_SIZE    16

struct wsclient {
    struct wsclient_events ev;
    CURL *easy;
    curl_socket_t socket;
    int signals;      /* borrowed, or -1 */
    struct buf early; /* what came with the answer's head */
    size_t early_at;
    wslay_event_context_ptr frames;
    bool closed;
    char why[CURL_ERROR_SIZE];
};

/* ---- frames ---- */

static ssize_t wsclient_on_recv(wslay_event_context_ptr ctx, uint8_t *to, size_t len, int flags,
                                void *arg) {
    struct wsclient *w = arg;
    size_t n = 0;
    (void)flags;
    if (w->early_at < w->early.len) {
        n = w->early.len - w->early_at < len ? w->early.len - w->early_at : len;
        memcpy(to, w->early.data + w->early_at, n);
        w->early_at += n;
        return (ssize_t)n;
    }
    CURLcode code = curl_easy_recv(w->easy, to, len, &n);
    if (code == CURLE_OK && n > 0)
        return (ssize_t)n;
    w->closed = code != CURLE_AGAIN;
    wslay_event_set_error(ctx, w->closed ? WSLAY_ERR_CALLBACK_FAILURE : WSLAY_ERR_WOULDBLOCK);
    return -1;
}

static ssize_t wsclient_on_send(wslay_event_context_ptr ctx, const uint8_t *data, size_t len,
                                int flags, void *arg) {
    struct wsclient *w = arg;
    size_t n = 0;
    (void)flags;
    CURLcode code = curl_easy_send(w->easy, data, len, &n);
    if (code == CURLE_OK)
        return (ssize_t)n;
    w->closed |= code != CURLE_AGAIN;
    wslay_event_set_error(ctx,
                          code == CURLE_AGAIN ? WSLAY_ERR_WOULDBLOCK : WSLAY_ERR_CALLBACK_FAILURE);
    return -1;
}

static int on_mask(wslay_event_context_ptr ctx, uint8_t *to, size_t len, void *arg) {
    (void)ctx, (void)arg;
    return getrandom(to, len, 0) == (ssize_t)len ? 0 : -1;
}

static void wsclient_on_message(wslay_event_context_ptr ctx,
                                const struct wslay_event_on_msg_recv_arg *m, void *arg) {
    const struct wsclient *w = arg;
    (void)ctx;
    if (!wslay_is_ctrl_frame(m->opcode))
        w->ev.on_message(w->ev.arg, m->opcode == WSLAY_TEXT_FRAME, (const char *)m->msg,
                         m->msg_length);
}

static int make_frames(struct wsclient *w, struct err *e) {
    static const struct wslay_event_callbacks callbacks = {.recv_callback = wsclient_on_recv,
                                                           .send_callback = wsclient_on_send,
                                                           .genmask_callback = on_mask,
                                                           .on_msg_recv_callback =
                                                               wsclient_on_message};
    if (wslay_event_context_client_init(&w->frames, &callbacks, w) != 0)
        return err_set(e, ENOMEM, "libwslay: out of memory");
    wslay_event_config_set_max_recv_msg_length(w->frames, MESSAGE_MAX);
    return 0;
}

int wsclient_fd(const struct wsclient *w) {
    return w->socket;
}

bool wsclient_wants_write(const struct wsclient *w) {
    return wslay_event_want_write(w->frames);
}

size_t wsclient_queued(const struct wsclient *w) {
    return wslay_event_get_queued_msg_length(w->frames);
}

void wsclient_send(struct wsclient *w, bool is_text, const char *data, size_t len) {
    const struct wslay_event_msg m = {is_text ? WSLAY_TEXT_FRAME : WSLAY_BINARY_FRAME,
                                      (const uint8_t *)data, len};
    (void)wslay_event_queue_msg(w->frames, &m);
}

int wsclient_pump(struct wsclient *w, struct err *e) {
    int rc = wslay_event_recv(w->frames);
    if (rc == 0)
        rc = wslay_event_send(w->frames);
    if (wslay_event_get_close_received(w->frames))
        return 1;
    /* Of a bad frame libwslay says nothing but to the server, and reads no more: whoever waits for
     * bytes would be woken up by the same ones for ever. */
    if (rc == 0 && !w->closed && !wslay_event_get_read_enabled(w->frames))
        return err_user(e, "bad_reply", "the server sent what is no WebSocket frame");
    if (rc != 0 || w->closed)
        return err_user(e, "engine_gone", "the server closed the connection");
    return 0;
}

/* ---- the handshake ---- */

static int wait_for(const struct wsclient *w, short events, uint64_t until, struct err *e) {
    struct pollfd p[] = {{.fd = w->socket, .events = events}, {.fd = w->signals, .events = POLLIN}};
    uint64_t now = now_ms();
    if (now >= until || poll(p, 2, (int)(until - now)) == 0)
        return err_user(e, "engine_gone", "the server does not answer");
    return p[1].revents & POLLIN ? err_user(e, "interrupted", "interrupted") : 0;
}

static int send_all(struct wsclient *w, const struct buf *text, uint64_t until, struct err *e) {
    for (size_t at = 0; at < text->len;) {
        size_t n = 0;
        CURLcode code = curl_easy_send(w->easy, text->data + at, text->len - at, &n);
        if (code != CURLE_OK && code != CURLE_AGAIN)
            return err_user(e, "engine_gone", "the server went away: %s", curl_easy_strerror(code));
        if (code == CURLE_AGAIN && wait_for(w, POLLOUT, until, e) < 0)
            return -1;
        at += n;
    }
    return 0;
}

/* More of the answer; 0 at its end. */
static int read_some(struct wsclient *w, uint64_t until, struct err *e) {
    for (;;) {
        size_t n = 0;
        CURLcode code = curl_easy_recv(w->easy, buf_reserve(&w->early, 4096), 4096, &n);
        if (code == CURLE_OK) {
            buf_commit(&w->early, n);
            return n > 0;
        }
        if (code != CURLE_AGAIN)
            return err_user(e, "engine_gone", "the server went away: %s", curl_easy_strerror(code));
        if (wait_for(w, POLLIN, until, e) < 0)
            return -1;
    }
}

static int read_head(struct wsclient *w, uint64_t until, struct err *e) {
    const char *end;
    while (!(end = strstr(w->early.data, "\r\n\r\n"))) {
        int rc = w->early.len > HEAD_MAX ? 0 : read_some(w, until, e);
        if (rc < 0)
            return -1;
        if (rc == 0)
            return err_user(e, "bad_reply", "what answers is no cloche server");
    }
    w->early_at = (size_t)(end + 4 - w->early.data);
    return 0;
}

/* The value of a header in the head, cut at the end of its line. */
static bool find_header(const struct wsclient *w, const char *name, char *out, size_t cap) {
    const char *line = w->early.data, *end = w->early.data + w->early_at;
    size_t len = strlen(name);
    while ((line = strstr(line, "\r\n")) && (line += 2) < end) {
        if (strncasecmp(line, name, len) != 0 || line[len] != ':')
            continue;
        const char *value = line + len + 1;
        value += strspn(value, " \t");
        snprintf(out, cap, "%.*s", (int)strcspn(value, "\r\n"), value);
        return true;
    }
    return false;
}

/* What the server has to say to our key (RFC 6455, 4.2.2). */
static void expect_accept(const char *key, struct buf *to) {
    static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    struct sha1_ctx sha;
    uint8_t digest[SHA1_DIGEST_SIZE];
    sha1_init(&sha);
    sha1_update(&sha, strlen(key), (const uint8_t *)key);
    sha1_update(&sha, sizeof guid - 1, (const uint8_t *)guid);
    sha1_digest(&sha, sizeof digest, digest);
    base64_encode(to, digest, sizeof digest);
}

static int read_refusal(struct wsclient *w, uint64_t until, struct remote_reply *reply,
                        struct err *e) {
    char text[24] = "0";
    (void)find_header(w, "content-length", text, sizeof text);
    size_t want = (size_t)strtoul(text, NULL, 10);
    if (want > HEAD_MAX)
        want = HEAD_MAX;
    while (w->early.len - w->early_at < want) {
        int rc = read_some(w, until, e);
        if (rc < 0)
            return -1;
        if (rc == 0)
            break;
    }
    buf_add(&reply->body, w->early.data + w->early_at, w->early.len - w->early_at);
    return 0;
}

static void write_request(const struct remote *r, const char *path, const char *key,
                          struct buf *to) {
    const char *host = strstr(r->base, "://") + 3;
    int len = (int)strcspn(host, "/");
    buf_addf(to, "GET %s%s HTTP/1.1\r\nHost: %.*s\r\n", host + len, path, len, host);
    buf_adds(to, "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n");
    buf_addf(to, "Sec-WebSocket-Key: %s\r\nUser-Agent: cloche/" CLOCHE_VERSION "\r\n", key);
    if (r->key)
        buf_addf(to, "%s\r\n", r->key);
    buf_adds(to, "\r\n");
}

/* 1: it is a WebSocket now; 0: refused. */
static int shake_hands(struct wsclient *w, const struct remote *r, const char *path,
                       struct remote_reply *reply, struct err *e) {
    AUTO_BUF key = BUF_INIT;
    AUTO_BUF request = BUF_INIT;
    AUTO_BUF expected = BUF_INIT;
    uint8_t random[KEY_SIZE];
    char accept[64] = "";
    uint64_t until = now_ms() + ANSWER_MS;
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return err_sys(e, "getrandom");
    base64_encode(&key, random, sizeof random);
    write_request(r, path, key.data, &request);
    if (send_all(w, &request, until, e) < 0 || read_head(w, until, e) < 0)
        return -1;
    if (strncmp(w->early.data, "HTTP/1.1 ", 9) != 0)
        return err_user(e, "bad_reply", "what answers is no cloche server");
    reply->status = (int)strtol(w->early.data + 9, NULL, 10);
    if (reply->status != 101)
        return read_refusal(w, until, reply, e);
    expect_accept(key.data, &expected);
    (void)find_header(w, "sec-websocket-accept", accept, sizeof accept);
    if (strcmp(accept, expected.data) != 0)
        return err_user(e, "bad_reply", "what answers speaks no WebSocket");
    return 1;
}

static int connect_to(struct wsclient *w, const struct remote *r, struct err *e) {
    w->easy = curl_easy_init();
    if (!w->easy)
        return err_set(e, ENOMEM, "libcurl: out of memory");
    remote_prepare(r, w->easy);
    curl_easy_setopt(w->easy, CURLOPT_URL, r->base);
    curl_easy_setopt(w->easy, CURLOPT_ERRORBUFFER, w->why);
    curl_easy_setopt(w->easy, CURLOPT_HTTPPROXYTUNNEL, 1L);
    curl_easy_setopt(w->easy, CURLOPT_CONNECT_ONLY, 1L);
    CURLcode code = curl_easy_perform(w->easy);
    if (code != CURLE_OK)
        return remote_failed(r, code, w->why, e);
    if (curl_easy_getinfo(w->easy, CURLINFO_ACTIVESOCKET, &w->socket) != CURLE_OK)
        return err_set(e, EIO, "libcurl: no socket");
    return 0;
}

int wsclient_open(struct remote *r, const char *path, const struct wsclient_events *ev,
                  struct wsclient **ret, struct remote_reply *reply, struct err *e) {
    struct wsclient *w = xcalloc(1, sizeof *w);
    w->ev = *ev;
    w->signals = r->signals;
    w->early = (struct buf)BUF_INIT;
    int rc = connect_to(w, r, e);
    if (rc == 0)
        rc = shake_hands(w, r, path, reply, e);
    if (rc == 1 && make_frames(w, e) < 0)
        rc = -1;
    if (rc == 1)
        *ret = w;
    else
        wsclient_free(w);
    return rc;
}

void wsclient_free(struct wsclient *w) {
    if (!w)
        return;
    if (w->frames)
        wslay_event_context_free(w->frames);
    curl_easy_cleanup(w->easy);
    buf_done(&w->early);
    free(w);
}
