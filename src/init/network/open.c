/* See link.h: the caller is told to go on, and both its ends are opened. There are two ways.
 *
 * Mostly the gate's connect takes its time. Then the caller's SYN is held back: a listener drops
 * it, until the outside has answered, and a socket of ours opens simultaneously or a crafted packet
 * says why not. So the caller waits in its kernel as it would natively.
 *
 * Where the outside has answered before the caller went on, on the same machine, its connect is
 * made here, to a listener that answers: on its own socket, with what it wrote, while it waits. It
 * spares two sleeps and all of the above. */

#include "init/network/open.h"

#include "base/fd.h"
#include "init/internal.h"
#include "net/judge.h"
#include "sandbox/egress/hold.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define SYNS 64 /* of one turn */

/* ---- both ends ---- */

static void hand_over(struct network *n, struct link *l) {
    unsigned index = (unsigned)(l - n->links);
    struct wire_out o;
    n->usher.page->slots[index] = (struct usher_count){0};
    u_relay_put(&o, &(struct u_relay){.id = l->id,
                                      .slot = index,
                                      .check = l->check,
                                      .inside = l->inside,
                                      .outside = l->outside});
    if (!usher_tell(&n->usher, &o)) {
        link_end(n, l);
        return;
    }
    n->traffic.all[l->account].connections++;
    link_become(n, l, LINK_RELAYED);
    fd_close(&l->inside);
    fd_close(&l->outside);
}

/* Its SYN, too, stands in the queue of the raw socket, and must not be taken for another's once
 * the usher has it. */
static void link_answered(struct init *b, struct link *l) {
    struct network *n = &b->network;
    struct err e;
    link_on_syns(b, n->raw[!net_addr_is_v4(&l->to.at)]);
    if (hold_dress(l->inside, &e) < 0)
        link_end(n, l);
    else
        hand_over(n, l);
}

void link_fail(struct network *n, struct link *l) {
    struct err e;
    if (!l->seen || !syn_can_fail(l->errnum))
        return;
    l->tries++;
    (void)syn_fail(&l->syn, l->errnum, &e);
    link_become(n, l, LINK_FAILING);
}

static void open_both(struct network *n, struct link *l) {
    struct err e;
    fd_close(&l->hold);
    link_become(n, l, LINK_OPENING);
    if (hold_answer(&l->syn.from, &l->to, &l->inside, &e) < 0 ||
        network_watch(n, l->inside, EPOLLOUT | EPOLLONESHOT, EVENT_LINK, (unsigned)(l - n->links)) <
            0)
        link_end(n, l);
}

void link_go_further(struct network *n, struct link *l) {
    if (l->state != LINK_HELD || !l->seen || !l->heard)
        return;
    if (l->errnum)
        link_fail(n, l);
    else
        open_both(n, l);
}

/* ---- the caller ---- */

static void hold_back(struct network *n, struct link *l) {
    struct err e;
    fd_close(&l->wish.socket); /* else it would keep trying when its owner has closed it */
    if (hold_open(&l->to, &l->hold, &e) < 0) {
        caller_answer(&l->caller, e.code == EADDRINUSE ? EADDRNOTAVAIL : e.code);
        link_give_up(n, l);
        return;
    }
    link_become(n, l, LINK_HELD);
    caller_go_on(&l->caller); /* SECURITY: see ask.c */
}

/* Our end of what was connected to the listener; false: nobody came yet. */
static bool take_answer(struct link *l) {
    struct err e;
    if (hold_accept(l->hold, &l->syn.from, &l->inside, &e) < 0)
        return false;
    fd_close(&l->hold); /* the program may want to listen there */
    l->seen = true;
    return true;
}

/* Whether somebody else waits at this destination: the kernel would choose between two. */
static bool is_shared(const struct network *n, const struct link *l) {
    for (unsigned i = 0; i < n->top; i++) {
        if (&n->links[i] != l && n->links[i].hold >= 0 && end_same(&n->links[i].to, &l->to))
            return true;
    }
    return false;
}

/* The other end is there already, so that nothing has to be held back: the caller's connect is made
 * here, on its own socket, and is over within the call. */
static bool connect_at_once(struct init *b, struct link *l) {
    struct network *n = &b->network;
    struct err e;
    if (!l->heard || l->errnum || is_shared(n, l) || hold_listen(&l->to, &l->hold, &e) < 0)
        return false;
    int errnum = hold_connect(l->wish.socket, (struct sockaddr *)&l->wish.address, l->wish.len);
    bool opens = errnum == 0 || errnum == EINPROGRESS || errnum == EINTR;
    bool open = opens && take_answer(l);
    fd_close(&l->wish.socket);
    link_become(n, l, LINK_OPENING);
    if (errnum == EINTR)
        caller_go_on(&l->caller); /* it has begun, and the caller waits for its end */
    else
        caller_answer(&l->caller, errnum);
    if (open)
        link_answered(b, l);
    else if (!opens || network_watch(n, l->hold, EPOLLIN, EVENT_LINK, (unsigned)(l - n->links)) < 0)
        link_end(n, l);
    return true;
}

void link_let_go_on(struct init *b, struct link *l) {
    struct network *n = &b->network;
    int errnum = caller_waits(&l->caller) ? routes_reach(n, &l->to.at) : ECONNABORTED;
    if (errnum) {
        caller_answer(&l->caller, errnum == ENOBUFS ? NET_TOO_MANY : errnum);
        link_give_up(n, l);
    } else if (!connect_at_once(b, l)) {
        hold_back(n, l);
    }
}

/* ---- what the kernel says ---- */

static struct link *link_of_syn(struct network *n, const struct syn *s) {
    struct link *found = NULL;
    for (unsigned i = 0; i < n->top; i++) {
        struct link *l = &n->links[i];
        if (l->state == LINK_FREE || !end_same(&l->to, &s->to))
            continue;
        if (l->state == LINK_OPENING && l->hold >= 0)
            return NULL; /* its listener answers it, or it is sent again */
        if (l->seen && end_same(&l->syn.from, &s->from) && !link_has_usher(l))
            return NULL; /* sent again */
        if (!found && l->state == LINK_HELD && !l->seen)
            found = l;
    }
    return found;
}

void link_on_syns(struct init *b, int raw) {
    struct network *n = &b->network;
    struct syn s;
    for (unsigned i = 0; i < SYNS && syn_next(raw, &s); i++) {
        struct link *l = s.to.port && !end_same(&s.from, &s.to) ? link_of_syn(n, &s) : NULL;
        if (!l)
            continue;
        l->seen = true;
        l->syn = s;
        link_go_further(n, l);
    }
}

void link_on_open(struct init *b, unsigned index) {
    struct network *n = &b->network;
    struct link *l = index < LINKS ? &n->links[index] : NULL;
    int errnum = 0;
    socklen_t len = sizeof errnum;
    if (!l || l->state != LINK_OPENING)
        return;
    if (l->hold >= 0) {
        if (take_answer(l))
            link_answered(b, l);
        return;
    }
    if (getsockopt(l->inside, SOL_SOCKET, SO_ERROR, &errnum, &len) < 0 || errnum) {
        link_end(n, l);
        return;
    }
    epoll_ctl(n->events, EPOLL_CTL_DEL, l->inside, NULL);
    hand_over(n, l);
}
