/* See link.h. Theory of operation. From A_ASK to U_RELAY:
 *
 *   ASKED    the caller waits in connect(). A refusal is its errno, with I_DENIED told before.
 *   HELD     allowed: a listener on the destination, which answers nothing, and the caller goes on.
 *            Its SYN is seen by the raw socket. Whether it blocks is the kernel's business.
 *   OPENING  the gate's socket is there, and a socket bound to the destination opens with the
 *            caller's (open.c).
 *   FAILING  the SYN is there, and an errno: a crafted packet tells it.
 *   RELAYED  the usher has both sockets.
 *   CLOSING  it was told to close them. One that does not is ended, and all that it has.
 *
 * A program that gives up says nothing, so once a second, and when there is no room, the kernel is
 * asked who still tries. */

#include "init/network/link.h"

#include "base/clock.h"
#include "base/fd.h"
#include "init/internal.h"
#include "init/network/open.h"
#include "net/judge.h"
#include "sandbox/egress/diag.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define AWAY_MS    750    /* that a gate may be away: with the pause between two looks a second */
#define VERDICT_MS 5000   /* that it may take for a verdict */
#define SYN_MS     5000   /* from the verdict to the SYN */
#define RESULT_MS  140000 /* to the end of the outside connect; the gate's bound is shorter */
#define OPEN_MS    5000   /* for both ends inside */
#define CLOSE_MS   500    /* from the order to the end; the gate waits for a second */
#define TRIES      3      /* of a crafted packet */
#define SLOT(id)   ((id) % 512)
_Static_assert(LINKS <= 512, "a link's number is in its id");

static const uint8_t link_next[LINK_STATES_] = {
    [LINK_FREE] = 1 << LINK_ASKED,
    [LINK_ASKED] = 1 << LINK_HELD | 1 << LINK_OPENING | 1 << LINK_FREE,
    [LINK_HELD] = 1 << LINK_OPENING | 1 << LINK_FAILING | 1 << LINK_FREE,
    [LINK_OPENING] = 1 << LINK_RELAYED | 1 << LINK_ENDED,
    [LINK_FAILING] = 1 << LINK_FREE,
    [LINK_RELAYED] = 1 << LINK_CLOSING | 1 << LINK_ENDED,
    [LINK_CLOSING] = 1 << LINK_ENDED,
    [LINK_ENDED] = 1 << LINK_FREE,
};

void link_become(struct network *n, struct link *l, enum link_state next) {
    if (!(link_next[l->state] & 1 << next))
        return;
    n->in[l->state]--; /* of free ones the number means nothing */
    n->in[next]++;
    l->state = next;
    l->since_ms = now_ms();
}

static void link_drop(struct network *n, struct link *l) {
    fd_close(&l->wish.socket);
    fd_close(&l->hold);
    fd_close(&l->outside);
    fd_close(&l->inside);
    link_become(n, l, LINK_FREE);
}

static struct link *link_find(struct network *n, uint32_t id) {
    struct link *l = SLOT(id) < LINKS ? &n->links[SLOT(id)] : NULL;
    return l && l->state != LINK_FREE && l->id == id ? l : NULL;
}

bool link_has_usher(const struct link *l) {
    return l->state == LINK_RELAYED || l->state == LINK_CLOSING;
}

static bool is_pending(const struct link *l) {
    return l->state == LINK_ASKED || l->state == LINK_HELD || l->state == LINK_FAILING;
}

const char *links_no_room(const struct network *n) {
    unsigned pending = n->in[LINK_ASKED] + n->in[LINK_HELD] + n->in[LINK_FAILING];
    unsigned open =
        n->in[LINK_OPENING] + n->in[LINK_RELAYED] + n->in[LINK_CLOSING] + n->in[LINK_ENDED];
    return pending >= NET_PENDING   ? "as many connections are being opened as may be at once"
           : open >= n->connections ? "as many connections are open as may be; close one first"
                                    : NULL;
}

bool links_wait(const struct network *n) {
    return n->in[LINK_ASKED] || n->in[LINK_HELD] || n->in[LINK_FAILING] || n->in[LINK_OPENING] ||
           n->in[LINK_CLOSING] || n->in[LINK_ENDED];
}

unsigned links_outside(const struct network *n) {
    return n->in[LINK_RELAYED] + n->in[LINK_CLOSING];
}

/* A listener, or what opens and what the usher has. */
unsigned links_sockets(const struct network *n) {
    return n->in[LINK_HELD] + n->in[LINK_FAILING] + n->in[LINK_OPENING] + n->in[LINK_RELAYED] +
           n->in[LINK_CLOSING];
}

static bool send_ask(struct network *n, struct link *l) {
    struct wire_out o;
    a_ask_put(&o, &(struct a_ask){.id = l->id,
                                  .process = l->process,
                                  .port = l->to.port,
                                  .address = {l->to.at.b, sizeof l->to.at.b}});
    return l->asked = network_tell_gate(n, &o);
}

void link_ask(struct init *b, uint32_t process, const struct caller *c, const struct end *to,
              struct wish *take) {
    struct network *n = &b->network;
    struct link *l = NULL;
    for (unsigned i = 0; i < LINKS && !l; i++) {
        l = n->links[i].state == LINK_FREE ? &n->links[i] : NULL;
        n->top = l && i >= n->top ? i + 1 : n->top;
    }
    if (!l) {
        caller_answer(c, NET_TOO_MANY);
        return;
    }
    *l = (struct link){.process = process,
                       .caller = *c,
                       .to = *to,
                       .wish = *take,
                       .hold = -1,
                       .outside = -1,
                       .inside = -1,
                       .id = ++n->serial * 512 + (uint32_t)(l - n->links)};
    take->socket = -1;
    link_become(n, l, LINK_ASKED);
    if (!send_ask(n, l) && n->gate >= 0) { /* it does not read */
        caller_answer(c, NET_TOO_MANY);
        link_drop(n, l);
    } else if (n->gate < 0 && now_ms() > n->away_ms + AWAY_MS) {
        caller_answer(c, ENETDOWN);
        link_drop(n, l);
    }
}

/* Whether the gate knows that the connection is over; else it is told by and by. */
static bool tell_end(struct network *n, const struct link *l) {
    const struct usher_count *count = &n->usher.page->slots[l - n->links];
    bool relayed = link_has_usher(l) || l->state == LINK_ENDED;
    struct wire_out o;
    a_end_put(&o, &(struct a_end){.id = l->id,
                                  .bytes_out = relayed ? count->out : 0,
                                  .bytes_in = relayed ? count->in : 0});
    return n->gate < 0 || network_tell_gate(n, &o);
}

void link_give_up(struct network *n, struct link *l) {
    struct wire_out o;
    if (l->heard && !l->errnum) {
        tell_end(n, l);
    } else if (l->asked && !l->heard) {
        a_withdraw_put(&o, &(struct a_withdraw){.id = l->id});
        network_tell_gate(n, &o);
    }
    link_drop(n, l);
}

void link_end(struct network *n, struct link *l) {
    bool told = tell_end(n, l);
    fd_close(&l->hold);
    fd_close(&l->inside);
    fd_close(&l->outside);
    link_become(n, l, LINK_ENDED);
    if (told)
        link_drop(n, l);
}

/* ---- the verdict ---- */

static void link_refuse(struct init *b, struct link *l, const struct a_verdict *m) {
    struct network *n = &b->network;
    n->traffic.all[traffic_account(&n->traffic, m->rule)].refused++;
    network_tell_refusal(b, l->process, m->op, m->detail, m->rule);
    if (l->state == LINK_ASKED) {
        caller_answer(&l->caller, (int)m->errnum);
        link_drop(n, l);
    } else { /* allowed by an earlier gate */
        l->heard = true;
        l->errnum = ENETUNREACH;
        link_fail(n, l);
    }
}

void link_on_verdict(struct init *b, struct wire_in *in, const struct a_verdict *m) {
    struct network *n = &b->network;
    struct link *l = link_find(n, m->id);
    if (!l || (l->state != LINK_ASKED && l->state != LINK_HELD) || l->allowed)
        return;
    if (m->errnum) {
        link_refuse(b, l, m);
        return;
    }
    l->allowed = true;
    l->check = m->check;
    l->account = traffic_account(&n->traffic, m->rule);
    snprintf(l->rule, sizeof l->rule, "%s", m->rule);
    l->outside = wire_keep(in, m->socket);
    l->heard = l->outside >= 0;
    if (l->state == LINK_HELD)
        link_go_further(n, l);
    else if (n->usher.state == USHER_READY)
        link_let_go_on(b, l);
}

void links_usher_came(struct init *b) {
    struct network *n = &b->network;
    for (unsigned i = 0; i < n->top; i++) {
        if (n->links[i].state == LINK_ASKED && n->links[i].allowed)
            link_let_go_on(b, &n->links[i]);
    }
}

/* ---- the result ---- */

void link_on_result(struct init *b, struct wire_in *in, const struct a_result *m) {
    struct network *n = &b->network;
    struct link *l = link_find(n, m->id);
    if (!l || (l->state != LINK_ASKED && l->state != LINK_HELD) || !l->allowed || l->heard)
        return; /* withdrawn meanwhile */
    l->heard = true;
    l->errnum = (int)m->errnum;
    l->outside = wire_keep(in, m->socket);
    if (!l->errnum && l->outside < 0)
        l->errnum = ENETDOWN;
    link_go_further(n, l);
}

/* ---- the relay ---- */

static void end_relay(struct network *n, struct link *l) {
    const struct usher_count *count = &n->usher.page->slots[l - n->links];
    n->traffic.all[l->account].bytes_out += count->out;
    n->traffic.all[l->account].bytes_in += count->in;
    link_end(n, l);
}

void link_on_end(struct init *b, const struct u_end *m) {
    struct network *n = &b->network;
    struct link *l = link_find(n, m->id);
    if (!l || !link_has_usher(l))
        return;
    if (m->over)
        network_tell_refusal(b, l->process, "send or receive more over the network", NETWORK_SPENT,
                             "network:limit");
    end_relay(n, l);
}

void link_on_hello(struct init *b, const struct u_hello *m) {
    struct network *n = &b->network;
    struct link *l = link_find(n, m->id);
    struct wire_out o;
    if (!l || l->state != LINK_RELAYED)
        return;
    snprintf(l->name, sizeof l->name, "%s", m->name);
    a_hello_put(&o, &(struct a_hello){.id = m->id, .check = m->check, .name = m->name});
    if (network_tell_gate(n, &o))
        return;
    u_close_put(&o, &(struct u_close){.id = m->id}); /* nobody can say whether it may */
    usher_order(&n->usher, &o);
}

void link_on_helloed(struct init *b, const struct a_helloed *m) {
    struct network *n = &b->network;
    struct link *l = link_find(n, m->id);
    struct wire_out o;
    if (!l || l->state != LINK_RELAYED)
        return;
    if (m->allowed) {
        snprintf(l->rule, sizeof l->rule, "%s", m->rule);
    } else {
        n->traffic.all[traffic_account(&n->traffic, m->rule)].refused++;
        network_tell_refusal(b, l->process, m->op, m->detail, m->rule);
    }
    u_helloed_put(&o, &(struct u_helloed){.id = m->id, .allowed = m->allowed});
    usher_tell(&n->usher, &o);
}

void link_on_close(struct init *b, const struct a_close *m) {
    struct network *n = &b->network;
    struct link *l = link_find(n, m->id);
    struct wire_out o;
    if (!l)
        return;
    network_tell_refusal(b, l->process, m->op, m->detail, m->rule);
    if (l->state == LINK_RELAYED) {
        u_close_put(&o, &(struct u_close){.id = m->id});
        link_become(n, l, LINK_CLOSING);
        usher_order(&n->usher, &o);
    } else if (l->state == LINK_OPENING) {
        const struct linger at_once = {.l_onoff = 1};
        setsockopt(l->inside, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        setsockopt(l->outside, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        link_end(n, l);
    } else if (l->state == LINK_HELD) {
        tell_end(n, l);
        fd_close(&l->outside);
        l->heard = true;
        l->errnum = ECONNREFUSED;
        link_fail(n, l);
    } else if (l->state == LINK_ASKED) { /* it waits for the usher to come */
        caller_answer(&l->caller, EACCES);
        link_give_up(n, l);
    }
}

/* ---- deaths ---- */

void links_usher_lost(struct init *b, int errnum) {
    struct network *n = &b->network;
    char why[NET_DETAIL_SIZE];
    struct net_verdict v;
    snprintf(why, sizeof why, "the process that copies the bytes could not be started: %s",
             strerror(errnum));
    for (unsigned i = 0; i < n->top; i++) {
        struct link *l = &n->links[i];
        if (link_has_usher(l))
            end_relay(n, l);
        if (l->state != LINK_ASKED)
            continue;
        net_verdict_refuse(&v, &l->to.at, l->to.port, "", NET_TOO_MANY, "network:limit", why);
        network_tell_refusal(b, l->process, v.op, v.detail, v.rule);
        caller_answer(&l->caller, NET_TOO_MANY);
        link_give_up(n, l);
    }
}

void links_gate_lost(struct init *b) {
    struct network *n = &b->network;
    for (unsigned i = 0; i < n->top; i++) {
        struct link *l = &n->links[i];
        if (l->state == LINK_ENDED) {
            link_drop(n, l);
        } else if (is_pending(l) && !l->heard) {
            l->asked = l->allowed = false;
            l->since_ms = now_ms();
        }
    }
}

static void say_it_stands(struct network *n, const struct link *l) {
    struct wire_out o;
    a_stands_put(&o, &(struct a_stands){.id = l->id,
                                        .port = l->to.port,
                                        .address = {l->to.at.b, sizeof l->to.at.b},
                                        .rule = l->rule,
                                        .name = l->name,
                                        .check = l->check});
    network_tell_gate(n, &o);
}

void links_gate_came(struct init *b) {
    struct network *n = &b->network;
    for (unsigned i = 0; i < n->top; i++) {
        struct link *l = &n->links[i];
        if (link_has_usher(l) || l->state == LINK_OPENING || (is_pending(l) && l->outside >= 0))
            say_it_stands(n, l);
        else if (is_pending(l) && !l->heard)
            send_ask(n, l);
    }
}

/* ---- the look ---- */

static void look_asked(struct network *n, struct link *l, uint64_t for_ms) {
    if (!caller_waits(&l->caller)) {
        link_give_up(n, l);
    } else if (for_ms > (l->asked ? VERDICT_MS : AWAY_MS)) {
        caller_answer(&l->caller, ENETDOWN);
        link_give_up(n, l);
    }
}

static void look_held(struct network *n, struct link *l, uint64_t for_ms) {
    if (!l->seen ? for_ms > SYN_MS : !diag_is_opening(n->diag, &l->syn) || for_ms > RESULT_MS) {
        link_give_up(n, l);
    } else if (!l->heard && !l->asked && for_ms > AWAY_MS) {
        l->heard = true;
        l->errnum = ENETDOWN;
        link_fail(n, l);
    }
}

static void link_look(struct network *n, struct link *l) {
    uint64_t for_ms = now_ms() - l->since_ms;
    struct err e;
    if (l->state == LINK_ASKED) {
        look_asked(n, l, for_ms);
    } else if (l->state == LINK_HELD) {
        look_held(n, l, for_ms);
    } else if (l->state == LINK_CLOSING && for_ms > CLOSE_MS) {
        usher_end(&n->usher);
    } else if (l->state == LINK_OPENING && for_ms > OPEN_MS) {
        link_end(n, l);
    } else if (l->state == LINK_FAILING) {
        if (l->tries++ < TRIES && diag_is_opening(n->diag, &l->syn))
            (void)syn_fail(&l->syn, l->errnum, &e);
        else
            link_drop(n, l);
    } else if (l->state == LINK_ENDED && tell_end(n, l)) {
        link_drop(n, l);
    }
}

void links_look_after(struct init *b) {
    struct network *n = &b->network;
    for (unsigned i = 0; i < n->top; i++) {
        if (n->links[i].state != LINK_FREE)
            link_look(n, &n->links[i]);
    }
}
