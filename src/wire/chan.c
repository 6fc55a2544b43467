/* See chan.h. At most MAX_PER_WAKE messages are handled per wake-up, so that one busy peer does not
 * starve the others. Of many peers together no more is read than their share of a turn; a channel
 * that waits for its turn is not watched for messages meanwhile. */

#include "wire/chan.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/log.h"
#include "wire/codec.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>

#define MAX_PER_WAKE 32
#define LEFT_MAX     128 /* descriptors that wait for an heir that is slow to close others */

struct chan_packet {
    struct chan_packet *next;
    size_t len;
    unsigned nfds;
    int fds[WIRE_MAX_FDS]; /* owned */
    uint8_t data[];
};

static void packet_free(struct chan_packet *p) {
    fd_close_all(p->fds, p->nfds);
    free(p);
}

static void chan_update(struct chan *c) {
    struct err e;
    uint32_t events = (c->paused || c->turn.waits_for ? 0u : EPOLLIN) | (c->head ? EPOLLOUT : 0u);
    if (c->watch.fd >= 0)
        loop_rewatch(c->loop, &c->watch, events, &e);
}

static void gone(struct chan *c, const struct err *why) {
    if (c->gone)
        return;
    c->gone = true;
    loop_unwatch(c->loop, &c->watch);
    c->on_gone(c, why);
}

/* Each message is closed here before the next one goes: that tells the heir that it is the last to
 * have what came before. */
static void leave(struct chan *c, int *fds, unsigned n) {
    for (unsigned at = 0; c->heir && at < n;) {
        struct wire_out o;
        unsigned from = at;
        struct i_left m = {0};
        for (; at < n && m.fds.n < WIRE_MAX_FDS; at++) {
            if (fds[at] >= 0)
                m.fds.fd[m.fds.n++] = fds[at];
        }
        i_left_put(&o, &m);
        if (o.nfds)
            chan_send(c->heir, &o); /* one that is gone takes nothing: then we close them */
        if (c->heir->head)
            c->heir->left += o.nfds;
        fd_close_all(fds + from, at - from);
    }
    fd_close_all(fds, n);
}

void chan_leave(struct chan *c, int *fds, unsigned n) {
    struct wire_out o;
    struct err e;
    if (n == 0)
        return;
    leave(c, fds, n);
    if (!c->heir)
        return;
    i_left_put(&o, &(struct i_left){0});
    chan_send(c->heir, &o);
    if (c->heir->left > LEFT_MAX) {
        err_set(&e, EPROTO, "it sends more descriptors than its sandbox can close");
        gone(c, &e);
    }
}

static void leave_rest(struct chan *c, struct wire_in *in) {
    chan_leave(c, in->fds + in->fd_at, in->nfds - in->fd_at);
    in->nfds = in->fd_at = 0;
}

/* False when there is nothing more to read for now. */
static bool read_one(struct chan *c) {
    struct err e = {0};
    struct wire_in in;
    in.nfds = in.fd_at = 0;
    enum wire_got got = wire_recv(c->fd, &in, &e);
    switch (got == WIRE_BAD && in.cut && c->takes_cut ? WIRE_GOT : got) {
    case WIRE_GOT:
        if (in.version < c->version)
            c->version = in.version;
        c->on_msg(c, &in);
        leave_rest(c, &in);
        return !c->gone && !c->paused && c->fd >= 0;
    case WIRE_NONE:
        return false;
    case WIRE_EOF:
        err_set(&e, EPIPE, "the other end is gone");
        gone(c, &e);
        return false;
    case WIRE_BAD:
        leave_rest(c, &in);
        gone(c, &e);
        return false;
    }
    return false;
}

static bool wait_for_turn(struct chan *c) {
    loop_share_wait(c->share, &c->turn);
    chan_update(c);
    return true;
}

static bool read_some(struct chan *c) {
    for (int i = 0; i < MAX_PER_WAKE; i++) {
        if (i > 0 && c->share && loop_share_is_spent(c->share))
            return wait_for_turn(c);
        if (!read_one(c))
            return false;
    }
    return true;
}

bool chan_pump(struct chan *c) {
    struct loop_share *s = c->share;
    if (c->gone || c->fd < 0 || c->paused)
        return false;
    if (s && !loop_share_begin(s, &c->turn))
        return wait_for_turn(c);
    bool more = read_some(c);
    if (s)
        loop_share_end(s);
    return more;
}

static void chan_on_turn(struct loop_sharer *who) {
    struct chan *c = who->arg;
    chan_pump(c);
    chan_update(c);
}

void chan_set_share(struct chan *c, struct loop_share *s, uint64_t owner) {
    bool waits = c->turn.waits_for;
    loop_share_leave(&c->turn);
    c->turn.owner = owner;
    c->share = s;
    if (waits)
        chan_update(c);
}

static enum wire_sent send_packet(struct chan *c, const struct chan_packet *p, struct err *e) {
    struct wire_out o;
    memcpy(o.data, p->data, p->len);
    o.len = p->len;
    o.bad = false;
    memcpy(o.fds, p->fds, p->nfds * sizeof(int));
    o.nfds = p->nfds;
    return wire_send(c->fd, &o, e);
}

static void flush(struct chan *c) {
    struct err e;
    while (c->head) {
        struct chan_packet *p = c->head;
        enum wire_sent sent = send_packet(c, p, &e);
        if (sent == WIRE_AGAIN)
            break;
        if (sent == WIRE_FAILED) {
            gone(c, &e);
            return;
        }
        c->head = p->next;
        if (!c->head)
            c->tail = NULL;
        c->queued -= p->len;
        packet_free(p);
    }
    chan_update(c);
    if (!c->head)
        c->left = 0;
    if (!c->head && c->on_drain)
        c->on_drain(c);
}

static void on_event(struct watch *w, uint32_t events) {
    struct chan *c = w->arg;
    if (events & EPOLLOUT)
        flush(c);
    if (c->fd < 0 || c->gone || !(events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
        return;
    if (!c->paused) {
        chan_pump(c);
    } else if (events & (EPOLLHUP | EPOLLERR)) { /* cannot be masked; nobody else would see it */
        struct err e;
        err_set(&e, EPIPE, "the other end is gone");
        gone(c, &e);
    } /* else it was paused in this turn, after we were told of the message */
}

int chan_init(struct chan *c, struct loop *l, int *fd, struct err *e) {
    if (fd_set_nonblock(*fd, e) < 0)
        return -1;
    c->loop = l;
    c->fd = -1;
    c->head = c->tail = NULL;
    c->queued = 0;
    c->left = 0;
    c->version = WIRE_VERSION;
    c->paused = c->gone = false;
    c->watch = (struct watch){.fd = -1, .fn = on_event, .arg = c};
    c->turn = (struct loop_sharer){.fn = chan_on_turn, .arg = c};
    if (loop_watch(l, &c->watch, *fd, EPOLLIN, e) < 0)
        return -1;
    c->fd = fd_take(fd);
    return 0;
}

void chan_done(struct chan *c) {
    int unread = 0;
    chan_set_share(c, NULL, 0);
    if (c->loop)
        loop_unwatch(c->loop, &c->watch);
    if (c->heir && c->fd >= 0 && ioctl(c->fd, FIONREAD, &unread) == 0 && unread > 0)
        leave(c, &c->fd, 1); /* until its end, or the next message: others may have a copy */
    fd_close(&c->fd);
    c->gone = true;
    while (c->head) {
        struct chan_packet *p = c->head;
        c->head = p->next;
        packet_free(p);
    }
    c->tail = NULL;
    c->queued = 0;
}

static void enqueue(struct chan *c, const struct wire_out *o) {
    struct chan_packet *p = xmalloc(sizeof *p + o->len);
    p->next = NULL;
    p->len = o->len;
    p->nfds = 0;
    memcpy(p->data, o->data, o->len);
    for (unsigned k = 0; k < o->nfds; k++) {
        int fd = fcntl(o->fds[k], F_DUPFD_CLOEXEC, 3);
        if (fd < 0) {
            struct err e;
            err_sys(&e, "duplicate a descriptor to send");
            packet_free(p);
            gone(c, &e);
            return;
        }
        p->fds[p->nfds++] = fd;
    }
    if (c->tail)
        c->tail->next = p;
    else
        c->head = p;
    c->tail = p;
    c->queued += p->len;
    chan_update(c);
}

void chan_send(struct chan *c, const struct wire_out *o) {
    if (c->gone || c->fd < 0)
        return;
    struct err e;
    if (o->bad) { /* never half of it, and never in silence */
        log_error("message dropped, it does not fit message=%s bytes=%zu fds=%u", wire_out_name(o),
                  o->len, o->nfds);
        return;
    }
    struct wire_out lowered;
    if (c->version && c->version < WIRE_VERSION) {
        if (!wire_lower(o, c->version, &lowered)) {
            log_error("message dropped, its receiver is older version=%u message=%s", c->version,
                      wire_out_name(o));
            return;
        }
        o = &lowered;
    }
    enum wire_sent sent = c->head ? WIRE_AGAIN : wire_send(c->fd, o, &e);
    if (sent == WIRE_AGAIN)
        enqueue(c, o);
    else if (sent == WIRE_FAILED)
        chan_update(c); /* a dead peer shows as a hang-up in its own turn */
}

void chan_pause(struct chan *c) {
    c->paused = true;
    chan_update(c);
}

void chan_resume(struct chan *c) {
    c->paused = false;
    chan_update(c);
}
