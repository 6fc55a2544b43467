/* What the library reads. libmicrohttpd takes a bare LF for the end of a chunk's line, of its data
 * and of trailers, and has no option against it; nor does it show those bytes to anybody. So this
 * file has a recv() of its own, which the dynamic linker puts in the place of libc's: the library
 * reads a client's socket through it, and each byte goes through framing.c once, in order, whatever
 * the pieces it comes in. http.c checks that the two agree on where each request begins and ends:
 * a library that read by other means would have every request refused. A head that the library
 * would answer by itself, in its own way, is given another end. */

#include "http/http_read.h"

#include "base/buf.h"
#include "http/http_check.h"
#include "http/http_conn.h"
#include "http/http_turn.h"
#include "http/internal.h"

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

/* For a head that is cut at a bad length the library gets an end that it takes, whatever digits
 * were there before: the request is refused when its turn comes, as all others are. Nothing behind
 * it is read. */
static size_t end_head(struct http_conn *c, char *to, size_t room) {
    size_t len = strlen(c->ending), n = len < room ? len : room;
    memcpy(to, c->ending, n);
    c->ending += n;
    return n;
}

/* What the library is to see of `len` bytes; -1: the connection is over. */
static ssize_t follow_bytes(struct http_conn *c, char *data, size_t len, size_t room) {
    struct http_req *r = c->req;
    if (r && r->switched)
        return (ssize_t)len; /* frames, say */
    size_t good = framing_add(&c->framing, data, len);
    if (c->framing.cut) {
        c->ending = "0\r\n\r\n";
        return (ssize_t)(good + end_head(c, data + good, room - good));
    }
    if (!c->framing.wrong || !r || c->requests < c->framing.heads)
        return (ssize_t)len; /* what is wrong with a later request is said when its turn comes */
    if (!r->queued)
        refuse_body(r, c->framing.wrong);
    http_cut(r);
    errno = ECONNRESET;
    return -1;
}

/* The symbol is libc's. The name is our own, since clang takes the fortified recv() of libc's
 * headers for a declaration of this one, inline. */
ssize_t http_read_recv(int fd, void *buf, size_t n, int flags) __asm__("recv");

ssize_t http_read_recv(int fd, void *buf, size_t n, int flags) {
    struct http_conn *c = reader_of(fd);
    if (c && !http_may_go(c)) {
        errno = EAGAIN;
        return -1;
    }
    if (c && c->ending && *c->ending)
        return (ssize_t)end_head(c, buf, n);
    if (c && c->ending) {
        errno = EAGAIN;
        return -1;
    }
    ssize_t got = recvfrom(fd, buf, n, flags, NULL, NULL);
    if (c)
        http_conn_drained(c, got < (ssize_t)n);
    return c && got > 0 ? follow_bytes(c, buf, (size_t)got, n) : got;
}
