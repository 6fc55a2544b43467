/* See check.h. The name that a connection says, before a byte of what says it goes out: the
 * ClientHello's (there may be two), or the Host of every request. Both are looked at in the socket
 * (MSG_PEEK) until they are complete; the socket wakes us when enough is there (SO_RCVLOWAT). Then
 * the gate is asked. */

#include "usher/check.h"

#include "base/clock.h"

#include <errno.h>
#include <string.h>

static uint8_t seen[64 << 10]; /* at most what relay.c takes at once */

static void wake_at(struct relay *r, size_t bytes) {
    int low = (int)(bytes < sizeof seen ? bytes : sizeof seen);
    r->wakes_at = low;
    setsockopt(r->fd[INSIDE], SOL_SOCKET, SO_RCVLOWAT, &low, sizeof low);
}

void check_set_deadline(struct usher *u, struct relay *r, uint64_t at_ms) {
    u->deadlines += (at_ms != 0) - (r->deadline_ms != 0);
    r->deadline_ms = at_ms;
}

void check_done(struct usher *u, struct relay *r) {
    check_set_deadline(u, r, 0);
}

static enum check_result check_ask(struct usher *u, struct relay *r, const char *name) {
    struct wire_out o;
    r->state = CHECK_ASKS;
    check_set_deadline(u, r, now_ms() + NET_HEAD_MS); /* a gate that died meanwhile never answers */
    u_hello_put(&o, &(struct u_hello){.id = r->id, .check = r->check, .name = name});
    usher_tell_init(u, &o);
    return CHECK_WAIT;
}

/* What cannot be understood is asked for without a name, so that it is told in words. */
static enum check_result ask_bad(struct usher *u, struct relay *r) {
    r->bad = true;
    return check_ask(u, r, "");
}

static enum check_result wait_for(struct usher *u, struct relay *r, size_t need) {
    if (r->last) /* no more will come */
        return ask_bad(u, r);
    if (!r->deadline_ms)
        check_set_deadline(u, r, now_ms() + NET_HEAD_MS);
    wake_at(r, need);
    return CHECK_WAIT;
}

static enum check_result look_at(struct usher *u, struct relay *r, size_t len, size_t *most) {
    struct net_looked l;
    if (r->check == NET_CHECK_HTTP)
        net_http_look(&r->http, seen, len, &l);
    else
        net_tls_look(&r->tls, seen, len, &l);
    if (l.pass) {
        *most = l.pass;
        check_done(u, r);
        if (r->wakes_at > 1)
            wake_at(r, 1);
        return CHECK_GO_ON;
    }
    switch (l.heard) {
    case NET_HEARD_MORE:
        return wait_for(u, r, l.need);
    case NET_HEARD_NAME:
        return check_ask(u, r, l.name);
    case NET_HEARD_BAD:
        break;
    }
    return ask_bad(u, r);
}

enum check_result check_look(struct usher *u, struct relay *r, size_t *most) {
    if (r->state == CHECK_ASKS)
        return CHECK_WAIT;
    ssize_t n = recv(r->fd[INSIDE], seen, sizeof seen, MSG_DONTWAIT | MSG_PEEK);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? CHECK_WAIT : CHECK_END;
    if (n == 0) {
        r->ways[INSIDE].ended = true;
        return CHECK_WAIT;
    }
    return look_at(u, r, (size_t)n, most);
}

void check_passed(struct relay *r, size_t n) {
    if (r->check == NET_CHECK_HTTP) {
        net_http_passed(&r->http, n);
        return;
    }
    net_tls_passed(&r->tls, n);
    if (r->tls.state == NET_TLS_OPEN) {
        r->state = CHECK_PASSED;
        r->check = NET_CHECK_NONE;
    }
}

void check_decided(struct usher *u, struct relay *r) {
    check_done(u, r);
    wake_at(r, 1);
    r->state = CHECK_READS;
    if (r->check == NET_CHECK_HTTP)
        net_http_allow(&r->http);
    else
        net_tls_allow(&r->tls);
}
