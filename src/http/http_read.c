/* What the library reads. libmicrohttpd takes a bare LF for the end of a chunk's line, of its data
 * and of trailers, and has no option against it; nor does it show those bytes to anybody. So this
 * file has a recv() of its own, which the dynamic linker puts in the place of libc's: the library
 * reads a client's socket through it, and each byte goes through framing.c once, in order, whatever
 * the pieces it comes in. http.c checks that the two agree on where each request begins and ends:
 * a library that read by other means would have every request refused. */

#include "http/http_internal.h"

#include "base/buf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* The server whose library runs on this thread: other callers of recv() are none of ours. */
static _Thread_local struct http *reading;

void http_read_begin(struct http *h) {
    reading = h;
}

void http_read_end(void) {
    reading = NULL;
}

void http_read_add(struct http_conn *c) {
    struct http *h = c->http;
    unsigned fd = (unsigned)c->fd;
    if (fd >= h->nreaders) {
        unsigned n = fd < 1024 ? 1024 : fd * 2;
        h->readers = xrealloc(h->readers, n * sizeof *h->readers);
        memset(h->readers + h->nreaders, 0, (n - h->nreaders) * sizeof *h->readers);
        h->nreaders = n;
    }
    h->readers[fd] = c;
}

void http_read_remove(struct http_conn *c) {
    if (c->http->readers[c->fd] == c)
        c->http->readers[c->fd] = NULL;
}

static struct http_conn *reader_of(int fd) {
    return reading && fd >= 0 && (unsigned)fd < reading->nreaders ? reading->readers[fd] : NULL;
}

/* In the midst of a body the library takes no reply: this one goes past it, for nothing else can be
 * on the way to the client. */
static void refuse_body(struct http_req *r, const char *wrong) {
    AUTO_BUF json = BUF_INIT;
    AUTO_BUF reply = BUF_INIT;
    http_refusal(wrong, &json);
    buf_addf(&reply,
             "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: application/json\r\n"
             "Content-Length: %zu\r\n\r\n%s",
             json.len, json.data);
    (void)!send(r->conn->fd, reply.data, reply.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    r->status = MHD_HTTP_BAD_REQUEST;
    r->bytes_out = json.len;
}

/* False: the connection is over. */
static bool follow(struct http_conn *c, const char *data, size_t len) {
    struct http_req *r = c->req;
    if (r && r->ws)
        return true; /* frames */
    framing_add(&c->framing, data, len);
    if (!c->framing.wrong || !r || c->requests < c->framing.heads)
        return true; /* what is wrong with a later request is said when its turn comes */
    if (!r->queued)
        refuse_body(r, c->framing.wrong);
    http_cut(r);
    return false;
}

ssize_t recv(int fd, void *buf, size_t n, int flags) {
    ssize_t got = recvfrom(fd, buf, n, flags, NULL, NULL);
    struct http_conn *c = got > 0 ? reader_of(fd) : NULL;
    if (!c || follow(c, buf, (size_t)got))
        return got;
    errno = ECONNRESET;
    return -1;
}
