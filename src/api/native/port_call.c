/* One request to a server inside, and its answer. Each has a connection of its own, which init
 * makes (live_ports.h) and whose answer is read until it is whole (http/answer.h).
 *
 * What waits is bounded both ways: of the client's body no more is read while the server inside
 * does not take it, and of the answer no more while the client does not. Reading has a share of
 * each turn of the loop, in which tenants take turns. A timer runs in every state in which it is
 * the server's turn to do something.
 *
 * SECURITY: the server inside may say anything, at any time, as slowly as it likes, or nothing. */

#include "api/native/ports.h"

#include "api/core/quota.h"
#include "api/core/shares.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "loop/crew.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define PIECE       (128u << 10)
#define OUT_HIGH    (64u << 10)  /* bytes for the server that wait before no more is read */
#define OUT_MOST    (128u << 10) /* what is gathered in a turn before it is sent */
#define OF_SANDBOX  64           /* connections to one sandbox */
#define METHOD_MOST 14           /* bytes: http keeps so many of a method, and one more */

enum port_state {
    PORT_ASKED,      /* init is to connect */
    PORT_CONNECTING, /* the server's system has not answered */
    PORT_OPEN,       /* the request goes in; the answer comes out */
    PORT_OVER,       /* whatever else comes is for nobody */
};

struct port_call {
    struct share_item share; /* among all that are not over */
    struct call *call;       /* borrowed: owns us */
    struct port_target target;
    struct live_watcher watcher;
    struct ports_ask ask;
    enum port_state state;
    bool ipv6, held;
    bool deaf;           /* the server takes no more of the request */
    bool begun;          /* the client has the answer's head */
    bool stuck;          /* the client is slow */
    const char *upgrade; /* borrowed from the request; or NULL */
    int fd;              /* owned */
    struct watch watch;
    struct timer timer;
    struct timer link; /* until that is over which lets the client in */
    struct loop_sharer turn;
    struct answer answer;
    struct buf out; /* for the server, from `at` on */
    size_t at;
    struct deferred flush; /* of that */
};

static struct loop *port_loop(const struct port_call *p) {
    return p->call->api->o.loop;
}

/* ---- the end ---- */

static struct live *live_of(struct port_call *p) {
    return p->watcher.live;
}

static void port_over(struct port_call *p) {
    struct live *l = live_of(p);
    if (p->state == PORT_OVER)
        return;
    p->state = PORT_OVER;
    shares_remove(&p->call->api->port_calls, &p->share);
    live_ports_leave(&p->ask);
    loop_share_leave(&p->turn);
    loop_unwatch(port_loop(p), &p->watch);
    loop_timer_stop(port_loop(p), &p->timer);
    loop_timer_stop(port_loop(p), &p->link);
    fd_close(&p->fd);
    if (p->held && l)
        live_ports_exit(l);
    p->held = false;
    live_unwatch(&p->watcher);
    buf_done(&p->out);
    p->out = (struct buf)BUF_INIT;
    p->at = 0;
}

static void port_on_free(struct deferred *d) {
    free(d->arg);
}

static void port_call_free(void *state) {
    struct port_call *p = state;
    port_over(p);
    answer_done(&p->answer);
    p->flush.fn = port_on_free; /* it may be on its way */
    loop_defer(port_loop(p), &p->flush);
}

/* The client hears of it if nothing of an answer is on its way; else it is cut. */
static void port_fail(struct port_call *p, const struct err *e) {
    struct problem said = problem_of(e);
    if (p->state == PORT_OVER)
        return;
    port_over(p);
    if (p->begun)
        http_abort(p->call->req);
    else
        call_problem(p->call, &said);
}

static void port_refuse(struct port_call *p, const char *kind, const char *what, const char *why) {
    struct err e;
    err_user(&e, kind, "the server at port %u of the sandbox%s%s", p->target.port, what, why);
    port_fail(p, &e);
}

static void port_on_live_end(struct live_watcher *w, const struct err *why) {
    struct port_call *p = w->arg;
    p->held = false;
    port_fail(p, why);
}

static void port_on_timer(struct timer *t) {
    struct port_call *p = t->arg;
    if (p->state == PORT_CONNECTING)
        port_refuse(p, "port_timeout", " accepts no connection", "");
    else
        port_refuse(p, "port_timeout", p->begun ? " sends nothing more" : " does not answer", "");
}

static void port_on_link_end(struct timer *t) {
    struct err e;
    err_user(&e, "bad_link", "this link is over");
    port_fail(t->arg, &e);
}

static void port_set_timer(struct port_call *p, uint64_t seconds) {
    loop_timer_in_ms(port_loop(p), &p->timer, seconds * 1000);
}

/* ---- outwards ---- */

static void port_watch(struct port_call *p);

static void port_on_drain(struct http_req *r) {
    struct call *c = http_user(r);
    struct port_call *p = c->state;
    p->stuck = false;
    if (p->state == PORT_OPEN) {
        port_set_timer(p, p->call->api->config->http.ports_idle_s);
        port_watch(p);
    }
}

static void port_switch(struct port_call *p) {
    const char *to = answer_field(&p->answer, "upgrade");
    if (!to || strcasecmp(to, p->upgrade) != 0 ||
        !answer_lists(&p->answer, "connection", "upgrade")) {
        port_refuse(p, "port_bad_answer", " switches to another protocol than was asked for", "");
        return;
    }
    p->begun = true;
    port_head_reply(p->call, &p->target, &p->answer);
}

static void port_on_head(void *arg, const struct answer *a) {
    struct port_call *p = arg;
    struct http_req *r = p->call->req;
    if (a->state == ANSWER_SWITCHED) {
        port_switch(p);
        return;
    }
    p->begun = true;
    port_head_reply(p->call, &p->target, a);
    http_on_drain(r, port_on_drain);
    if (a->length != ANSWER_LENGTH_NONE && a->status != 204 && a->status != 304)
        http_stream_of(r, a->status, a->length);
    else if (a->state == ANSWER_WHOLE)
        http_reply(r, a->status, NULL, "", 0);
    else
        http_stream(r, a->status, NULL);
}

static void port_on_data(void *arg, const char *data, size_t len) {
    struct port_call *p = arg;
    http_write(p->call->req, data, len);
}

/* The socket goes to whoever copies from now on, and still counts as ours. */
static void port_tunnel(struct port_call *p, const char *early, size_t len) {
    struct http_req *r = p->call->req;
    loop_unwatch(port_loop(p), &p->watch);
    loop_timer_stop(port_loop(p), &p->timer);
    const struct http_tunnel_options o = {.early = early,
                                          .len = len,
                                          .idle_ms =
                                              p->call->api->config->http.ports_idle_s * 1000ull,
                                          .owner = p->turn.owner};
    http_tunnel(r, &p->fd, &o);
}

/* What has come, as far as the answer goes. */
static void port_heard(struct port_call *p, const char *data, size_t len) {
    size_t used = answer_add(&p->answer, data, len);
    if (p->state != PORT_OPEN)
        return;
    if (p->answer.state == ANSWER_WRONG) {
        port_refuse(p, "port_bad_answer", "'s answer is refused: ", p->answer.wrong);
    } else if (p->answer.state == ANSWER_SWITCHED) {
        port_tunnel(p, data + used, len - used);
    } else if (p->answer.state == ANSWER_WHOLE) {
        port_over(p);
        http_end(p->call->req);
    }
}

static void port_read(struct port_call *p) {
    static char piece[PIECE];
    ssize_t n = recv(p->fd, piece, sizeof piece, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0) {
        if (p->begun)
            port_set_timer(p, p->call->api->config->http.ports_idle_s);
        port_heard(p, piece, (size_t)n);
        return;
    }
    if (n == 0)
        answer_end(&p->answer);
    if (p->answer.state == ANSWER_WHOLE) {
        port_over(p);
        http_end(p->call->req);
    } else {
        port_refuse(p, "port_bad_answer",
                    "'s answer is cut: ", n < 0 ? strerror(errno) : p->answer.wrong);
    }
}

/* ---- inwards ---- */

static size_t port_waits(const struct port_call *p) {
    return p->out.len - p->at;
}

/* A server that takes no more may have answered all the same. */
static void port_send(struct port_call *p) {
    while (port_waits(p) && !p->deaf) {
        ssize_t n = send(p->fd, p->out.data + p->at, port_waits(p), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            break;
        p->deaf = n < 0;
        p->at += n > 0 ? (size_t)n : 0;
        if (!p->begun)
            port_set_timer(p, p->call->api->config->http.ports_answer_s);
    }
    if (p->deaf || !port_waits(p)) {
        buf_clear(&p->out);
        p->at = 0;
    } else if (p->at > OUT_HIGH) {
        buf_drop(&p->out, p->at);
        p->at = 0;
    }
    if (port_waits(p) < OUT_HIGH)
        http_proceed(p->call->req);
}

static void port_on_piece(struct http_req *r, const char *data, size_t len) {
    struct call *c = http_user(r);
    struct port_call *p = c->state;
    bool chunked = http_header(r, "Transfer-Encoding") != NULL;
    if (p->state != PORT_OPEN || p->deaf)
        return;
    if (chunked)
        buf_addf(&p->out, "%zx\r\n", len);
    buf_add(&p->out, data, len);
    if (chunked)
        buf_adds(&p->out, "\r\n");
    loop_defer(port_loop(p), &p->flush); /* a turn has some pieces */
    if (port_waits(p) < OUT_MOST)
        return;
    port_send(p);
    if (p->state == PORT_OPEN && port_waits(p) >= OUT_HIGH)
        http_hold(r);
}

static void port_on_flush(struct deferred *d) {
    struct port_call *p = d->arg;
    if (p->state != PORT_OPEN)
        return;
    port_send(p);
    if (port_waits(p) >= OUT_HIGH)
        http_hold(p->call->req);
    port_watch(p);
}

static void port_on_whole(struct http_req *r) {
    struct call *c = http_user(r);
    struct port_call *p = c->state;
    if (p->state != PORT_OPEN || p->deaf)
        return;
    if (http_header(r, "Transfer-Encoding"))
        buf_adds(&p->out, "0\r\n\r\n");
    port_send(p);
    port_watch(p);
}

/* ---- turns ---- */

/* Sockets are watched for what is wanted of them. */
static void port_watch(struct port_call *p) {
    struct err e;
    uint32_t events = (p->stuck ? 0u : EPOLLIN) | (port_waits(p) ? EPOLLOUT : 0u);
    if (p->state != PORT_OPEN || p->fd < 0)
        return;
    if (!events)
        loop_unwatch(port_loop(p), &p->watch);
    else if (p->watch.fd >= 0 ? loop_rewatch(port_loop(p), &p->watch, events, &e) < 0
                              : loop_watch(port_loop(p), &p->watch, p->fd, events, &e) < 0)
        port_fail(p, &e);
}

static void port_on_turn(struct loop_sharer *who) {
    struct port_call *p = who->arg;
    uint64_t began_ns = thread_cpu_ns();
    struct live *l = live_of(p);
    if (port_waits(p))
        port_send(p);
    if (!p->stuck)
        port_read(p);
    if (p->state == PORT_OPEN && http_backlog(p->call->req) > HTTP_HIGH_WATER) {
        p->stuck = true;
        loop_timer_stop(port_loop(p), &p->timer); /* the client's time is not the server's */
    }
    port_watch(p);
    if (l)
        live_served(l, thread_cpu_ns() - began_ns);
}

static void port_connected(struct port_call *p) {
    int wrong = 0;
    socklen_t len = sizeof wrong;
    getsockopt(p->fd, SOL_SOCKET, SO_ERROR, &wrong, &len);
    if (wrong == 0) {
        p->state = PORT_OPEN;
        port_send(p);
        port_watch(p);
        return;
    }
    loop_unwatch(port_loop(p), &p->watch);
    fd_close(&p->fd);
    struct err e;
    if (wrong == ECONNREFUSED && !p->ipv6) { /* it may listen at the other loopback only */
        p->ipv6 = true;
        p->state = PORT_ASKED;
        if (live_ports_connect(live_of(p), p->target.port, true, &p->ask, &e) < 0)
            port_fail(p, &e);
    } else if (wrong == ECONNREFUSED) {
        err_user(&e, "port_closed", "nothing listens at port %u of the sandbox", p->target.port);
        port_fail(p, &e);
    } else {
        port_refuse(p, "port_closed", " cannot be reached: ", strerror(wrong));
    }
}

static void port_on_ready(struct watch *w, uint32_t events) {
    struct port_call *p = w->arg;
    (void)events;
    if (p->state == PORT_CONNECTING)
        port_connected(p);
    else
        loop_share_wait(&p->call->api->port_share, &p->turn);
}

/* ---- the beginning ---- */

static void port_on_socket(void *arg, const struct ports_answer *a) {
    struct port_call *p = arg;
    struct err e;
    if (a->why) {
        port_fail(p, a->why);
        return;
    }
    p->fd = a->fd;
    p->state = PORT_CONNECTING;
    port_set_timer(p, p->call->api->config->http.ports_connect_s);
    if (loop_watch(port_loop(p), &p->watch, p->fd, EPOLLOUT, &e) < 0)
        port_fail(p, &e);
}

/* Who else is connected. */
static bool has_room(struct call *c, const struct live *l) {
    const struct shares *s = &c->api->port_calls;
    unsigned there = live_ports_entered(l), most = c->api->config->http.ports_connections;
    if (there >= OF_SANDBOX)
        call_refuse(c, "too_many_at_once", "%u connections to servers in this sandbox are open",
                    there);
    else if (s->n >= most ||
             shares_count(s, c->who.tenant) >= quota_share(c->api, c->who.tenant, most))
        call_refuse(c, "too_many_at_once",
                    "%zu connections to servers in sandboxes are open, as many as may be", s->n);
    else
        return true;
    return false;
}

static bool is_passed(struct call *c) {
    const char *method = http_method(c->req);
    if (strlen(method) <= METHOD_MOST && strcmp(method, "CONNECT") != 0 &&
        strcmp(method, "TRACE") != 0 &&
        strspn(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-abcdefghijklmnopqrstuvwxyz") == strlen(method))
        return true;
    call_refuse(c, "bad_method", "this method is not passed on to servers in sandboxes");
    return false;
}

void port_call_begin(struct call *c, const struct port_target *t) {
    struct err e;
    struct live *l = live_find(c->api->o.engine, c->who.tenant, t->id, &e);
    if (!l) {
        call_fail(c, &e);
        return;
    }
    if (live_is_paused(l)) {
        call_refuse(c, "sandbox_paused", "the sandbox is paused");
        return;
    }
    if (!is_passed(c) || !has_room(c, l))
        return;
    struct port_call *p = xcalloc(1, sizeof *p);
    *p = (struct port_call){.call = c, .target = *t, .fd = -1, .out = BUF_INIT, .held = true};
    p->upgrade = port_head_upgrade(c);
    p->answer = (struct answer)ANSWER_INIT;
    p->answer.arg = p;
    p->answer.on_head = port_on_head;
    p->answer.on_data = port_on_data;
    p->answer.to_head = strcmp(http_method(c->req), "HEAD") == 0;
    p->answer.may_switch = p->upgrade != NULL;
    p->watcher = (struct live_watcher){.on_end = port_on_live_end, .arg = p};
    p->ask = (struct ports_ask){.fn = port_on_socket, .arg = p};
    p->watch = (struct watch){.fd = -1, .fn = port_on_ready, .arg = p};
    p->flush = (struct deferred){.fn = port_on_flush, .arg = p};
    p->timer = (struct timer){.fn = port_on_timer, .arg = p};
    p->link = (struct timer){.fn = port_on_link_end, .arg = p};
    if (c->site.left_s && c->api->has_keys)
        loop_timer_in_ms(port_loop(p), &p->link, c->site.left_s * 1000);
    p->turn =
        (struct loop_sharer){.fn = port_on_turn, .arg = p, .owner = crew_owner(c->who.tenant)};
    c->state = p;
    c->state_done = port_call_free;
    shares_add(&c->api->port_calls, &p->share, c->who.tenant, 0);
    live_watch(l, &p->watcher);
    live_ports_enter(l);
    port_head_request(c, t, p->upgrade, &p->out);
    http_take_stream(c->req, port_on_piece, port_on_whole);
    http_set_for_client(c->req);
    if (http_has_body(c->req))
        http_hold(c->req);
    if (live_ports_connect(l, t->port, false, &p->ask, &e) < 0)
        port_fail(p, &e);
}
