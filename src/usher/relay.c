/* See relay.h. One connection: bytes from inside go out, bytes from outside come in. What a side
 * does not take is kept, and no more is read for it until then. Events are told once (EPOLLET):
 * whoever has not read or written all that there was asks again, so that each gets its turn. */

#include "usher/relay.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "usher/check.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define PIECE (256 << 10) /* with 64 KiB a gigabyte took half as much processor time again */
#define TURN  (512 << 10) /* bytes of one way, before others have theirs */

enum pumped { PUMP_IDLE, PUMP_MORE, PUMP_BROKEN, PUMP_OVER };

static char shared[PIECE];

static void way_done(struct way *w) {
    free(w->rest);
    *w = (struct way){0};
}

static void relay_count(struct usher *u, const struct relay *r, enum side from, size_t n) {
    struct usher_count *c = &u->page->slots[r->slot];
    u->page->spent += n;
    if (from == INSIDE)
        c->out += n;
    else
        c->in += n;
}

/* Init hears of it first: as long as it does not know, the sockets count as ours. */
static void relay_end(struct usher *u, struct relay *r, bool reset, bool over) {
    const struct linger at_once = {.l_onoff = 1};
    struct wire_out o;
    u_end_put(&o, &(struct u_end){.id = r->id, .over = over});
    usher_tell_init(u, &o);
    for (int i = 0; i < SIDES; i++) {
        if (reset)
            setsockopt(r->fd[i], SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        fd_close(&r->fd[i]);
        way_done(&r->ways[i]);
    }
    check_done(u, r);
    r->used = false;
}

/* Both sides have ended, and all bytes are given. What the other host has not acknowledged is kept
 * for it for a while, and counts as a connection as long. */
static void relay_flush(struct usher *u, struct relay *r) {
    struct tcp_info info = {0};
    socklen_t len = sizeof info;
    if (!r->flushes) {
        r->flushes = true;
        fd_close(&r->fd[INSIDE]);
        check_set_deadline(u, r, now_ms() + NET_FLUSH_MS);
    }
    if (getsockopt(r->fd[OUTSIDE], IPPROTO_TCP, TCP_INFO, &info, &len) < 0 ||
        info.tcpi_state == TCP_CLOSE)
        relay_end(u, r, false, false);
}

/* How many bytes may still be read, of all connections. */
static size_t allowance(const struct usher *u, size_t want) {
    if (!u->bytes)
        return want;
    uint64_t left = u->bytes > u->page->spent ? u->bytes - u->page->spent : 0;
    return left < want ? (size_t)left : want;
}

static void keep(struct way *w, const char *data, size_t len) {
    w->rest = xmalloc(len);
    memcpy(w->rest, data, len);
    w->at = 0;
    w->len = len;
}

/* -1: broken. */
static ssize_t give(int to, const char *data, size_t len) {
    ssize_t n = send(to, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
    return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : n;
}

/* False: the rest is still there. */
static enum pumped give_rest(struct usher *u, struct relay *r, enum side from) {
    struct way *w = &r->ways[from];
    ssize_t n = give(r->fd[!from], w->rest + w->at, w->len);
    if (n < 0)
        return PUMP_BROKEN;
    relay_count(u, r, from, (size_t)n);
    w->at += (size_t)n;
    w->len -= (size_t)n;
    if (w->len)
        return PUMP_IDLE;
    free(w->rest);
    w->rest = NULL;
    return PUMP_MORE;
}

/* What was checked is looked at before it is taken, and taken only as far as it went. */
static enum pumped pump_checked(struct usher *u, struct relay *r) {
    size_t most = 0;
    enum check_result c = check_look(u, r, &most);
    if (c != CHECK_GO_ON)
        return c == CHECK_END ? PUMP_BROKEN : PUMP_IDLE;
    if (!(most = allowance(u, most < PIECE ? most : PIECE)))
        return PUMP_OVER;
    ssize_t n = recv(r->fd[INSIDE], shared, most, MSG_DONTWAIT | MSG_PEEK);
    if (n <= 0)
        return n < 0 && errno != EAGAIN ? PUMP_BROKEN : PUMP_IDLE;
    ssize_t given = give(r->fd[OUTSIDE], shared, (size_t)n);
    if (given < 0)
        return PUMP_BROKEN;
    check_passed(r, (size_t)given);
    relay_count(u, r, INSIDE, (size_t)given);
    if (given > 0 && recv(r->fd[INSIDE], shared, (size_t)given, MSG_DONTWAIT) != given)
        return PUMP_BROKEN;
    return given < n ? PUMP_IDLE : PUMP_MORE;
}

static enum pumped pump_piece(struct usher *u, struct relay *r, enum side from) {
    struct way *w = &r->ways[from];
    if (w->len)
        return give_rest(u, r, from);
    if (w->ended)
        return PUMP_IDLE;
    if (from == INSIDE && r->check != NET_CHECK_NONE)
        return pump_checked(u, r);
    size_t most = allowance(u, sizeof shared);
    ssize_t n = recv(r->fd[from], shared, most ? most : 1, MSG_DONTWAIT | (most ? 0 : MSG_PEEK));
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? PUMP_IDLE : PUMP_BROKEN;
    if (n == 0) {
        w->ended = true;
        return PUMP_IDLE;
    }
    if (!most)
        return PUMP_OVER;
    ssize_t given = give(r->fd[!from], shared, (size_t)n);
    if (given < 0)
        return PUMP_BROKEN;
    relay_count(u, r, from, (size_t)given);
    if (given == n)
        return PUMP_MORE;
    keep(w, shared + given, (size_t)(n - given));
    return PUMP_IDLE;
}

static enum pumped pump(struct usher *u, struct relay *r, enum side from) {
    struct way *w = &r->ways[from];
    enum pumped p = PUMP_MORE;
    for (size_t done = 0; done < TURN && p == PUMP_MORE; done += PIECE)
        p = pump_piece(u, r, from);
    if (p == PUMP_IDLE && w->ended && !w->len && !w->shut) {
        shutdown(r->fd[!from], SHUT_WR);
        w->shut = true;
    }
    return p;
}

static enum event event_of(unsigned side) {
    return side == INSIDE ? EVENT_INSIDE : EVENT_OUTSIDE;
}

/* Asks for the events anew: those that are there already are told again. */
static void watch_again(struct usher *u, const struct relay *r) {
    for (unsigned i = 0; i < SIDES; i++) {
        struct epoll_event e = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                                .data.u64 = (uint64_t)event_of(i) << 32 | r->id};
        epoll_ctl(u->events, EPOLL_CTL_MOD, r->fd[i], &e);
    }
}

/* Whether there is more to do at once. */
static bool relay_pump(struct usher *u, struct relay *r) {
    enum pumped out = pump(u, r, INSIDE);
    enum pumped in = out == PUMP_BROKEN ? PUMP_BROKEN : pump(u, r, OUTSIDE);
    if (out == PUMP_OVER || in == PUMP_OVER)
        relay_end(u, r, true, true);
    else if (out == PUMP_BROKEN || in == PUMP_BROKEN)
        relay_end(u, r, true, false);
    else if (r->ways[INSIDE].shut && r->ways[OUTSIDE].shut)
        relay_flush(u, r);
    else if (out == PUMP_MORE || in == PUMP_MORE)
        watch_again(u, r);
    return r->used && (out == PUMP_MORE || in == PUMP_MORE);
}

static struct relay *relay_find(struct usher *u, uint32_t id) {
    for (unsigned i = 0; i < USHER_SLOTS; i++) {
        if (u->relays[i].used && u->relays[i].id == id)
            return &u->relays[i];
    }
    return NULL;
}

void relay_step(struct usher *u, uint32_t id, enum side side, uint32_t events) {
    struct relay *r = relay_find(u, id);
    if (!r)
        return;
    if (r->flushes) {
        relay_flush(u, r);
        return;
    }
    if (events & EPOLLRDHUP && side == INSIDE)
        r->last = true;
    /* What came before a reset is passed on; the error is told behind it, but to a side that had
     * ended before. */
    const struct way *w = &r->ways[side];
    if (!relay_pump(u, r) && r->used && events & EPOLLERR && (w->ended || !w->len))
        relay_end(u, r, true, false);
}

void relay_new(struct usher *u, struct wire_in *in, const struct u_relay *m) {
    struct relay *r = m->slot < USHER_SLOTS ? &u->relays[m->slot] : NULL;
    int one = 1;
    if (!r || r->used)
        _exit(1); /* init would never */
    *r = (struct relay){.used = true, .id = m->id, .slot = m->slot, .check = m->check};
    r->state = m->check == NET_CHECK_NONE ? CHECK_PASSED : CHECK_READS;
    r->fd[INSIDE] = wire_keep(in, m->inside);
    r->fd[OUTSIDE] = wire_keep(in, m->outside);
    for (unsigned i = 0; i < SIDES; i++) {
        setsockopt(r->fd[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        if (!usher_watch(u, r->fd[i], EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, event_of(i),
                         r->id)) {
            relay_end(u, r, true, false);
            return;
        }
    }
}

void relay_close(struct usher *u, uint32_t id) {
    struct relay *r = relay_find(u, id);
    if (r)
        relay_end(u, r, true, false);
}

void relay_helloed(struct usher *u, const struct u_helloed *m) {
    struct relay *r = relay_find(u, m->id);
    if (!r || r->state != CHECK_ASKS)
        return;
    if (!m->allowed || r->bad) {
        relay_end(u, r, true, false);
        return;
    }
    check_decided(u, r);
    (void)relay_pump(u, r);
}

void relays_look_after(struct usher *u) {
    uint64_t now = now_ms();
    for (unsigned i = 0; u->deadlines && i < USHER_SLOTS; i++) {
        struct relay *r = &u->relays[i];
        if (r->used && r->deadline_ms && now >= r->deadline_ms)
            relay_end(u, r, true, false);
    }
}
