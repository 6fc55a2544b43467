/* See links.h. A link is asked for (A_ASK), judged (A_VERDICT), and, when it is allowed, connecting
 * until there is an A_RESULT, unless the verdict brought the socket; then open, until init says
 * that it is over. One that a policy does not allow any more is closing: init was told, and it
 * counts until init says that it is over.
 *
 * What is limited is limited after the policy has spoken, so that a refusal names the rule. */

#include "gate/links.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/list.h"
#include "gate/attach.h"
#include "gate/outside.h"
#include "gate/tenants.h"
#include "net/judge.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#define VERDICT_SOCKET_SINCE                                                                       \
    6 /* the WIRE_VERSION of an init that takes a socket with a verdict                            \
       */

enum link_state { LINK_CONNECTING, LINK_OPEN, LINK_CLOSING };

struct link {
    struct link *next;
    struct attachment *of; /* borrowed */
    enum link_state state;
    bool confirmed; /* init knows it on this channel */
    uint32_t id, process;
    struct net_addr address;
    uint16_t port;
    char rule[NET_WORD_SIZE];
    enum net_check check;     /* what the usher looks at */
    char name[NET_NAME_SIZE]; /* that the address was told for, or that the connection said last */
    int fd;                   /* owned, while it is connecting */
    struct watch watch;
    struct timer give_up;
    struct deferred free_later;
};

static struct link *link_find(const struct attachment *a, uint32_t id) {
    struct link *l = a->links;
    while (l && l->id != id)
        l = l->next;
    return l;
}

void links_tell_open(struct attachment *a, bool less) {
    uint32_t n = a->npending + a->nopen;
    uint32_t step = (n + NET_OPEN_STEP - 1) / NET_OPEN_STEP * NET_OPEN_STEP;
    if (less ? step == a->told_open : step <= a->told_open)
        return;
    struct wire_out o;
    a->told_open = step;
    g_open_put(&o, &(struct g_open){.sandbox = a->sandbox, .connections = step});
    chan_send(&a->gate->server, &o); /* never lost: it is the server's account */
}

/* The server holds memory for what is open: it hears of it in steps, of more when who asked has its
 * answer, of less after a while. */
static void links_count(struct attachment *a, int pending, int open) {
    a->npending += (unsigned)pending;
    a->nopen += (unsigned)open;
    a->tenant->outside += (unsigned)(pending + open);
    a->gate->outside += (unsigned)(pending + open);
    gate_counted(a->gate);
}

static void link_free(struct deferred *d) {
    free(d->arg);
}

static void link_forget(struct link *l) {
    struct attachment *a = l->of;
    bool pending = l->state == LINK_CONNECTING;
    bool closing = l->state == LINK_CLOSING;
    loop_unwatch(a->gate->loop, &l->watch);
    loop_timer_stop(a->gate->loop, &l->give_up);
    fd_close(&l->fd);
    LIST_REMOVE(&a->links, l, next);
    links_count(a, pending ? -1 : 0, pending ? 0 : -1);
    if (closing && --a->nclosing == 0)
        attach_closed(a);
    loop_defer(a->gate->loop, &l->free_later);
}

static void tell_result(struct link *l, int errnum) {
    struct wire_out o;
    a_result_put(&o, &(struct a_result){
                         .id = l->id, .errnum = (uint32_t)errnum, .socket = errnum ? -1 : l->fd});
    attach_send(l->of, &o);
}

static void link_fail(struct link *l, int errnum) {
    l->of->gate->counts.connect_errors++;
    tell_result(l, errnum);
    link_forget(l);
}

/* Init has the socket. */
static void link_opened(struct link *l) {
    if (l->of->over) /* there was no descriptor left to send it with */
        return;
    loop_unwatch(l->of->gate->loop, &l->watch);
    loop_timer_stop(l->of->gate->loop, &l->give_up);
    fd_close(&l->fd);
    l->state = LINK_OPEN;
    links_count(l->of, -1, 1);
}

/* Of a connect that is over. */
static int link_errnum(const struct link *l) {
    const struct net_own own = gate_own(l->of->gate);
    int errnum = outside_result(l->fd);
    return errnum == 0 && outside_is_this_host(l->fd, &l->address, &own) ? EACCES : errnum;
}

static void link_on_event(struct watch *w, uint32_t events) {
    struct link *l = w->arg;
    (void)events;
    int errnum = link_errnum(l);
    if (errnum) {
        link_fail(l, errnum);
        return;
    }
    tell_result(l, 0);
    link_opened(l);
}

static void link_on_give_up(struct timer *t) {
    link_fail(t->arg, ETIMEDOUT);
}

static struct link *link_new(struct attachment *a, const struct link *from) {
    struct link *l = xmalloc(sizeof *l);
    *l = *from;
    l->of = a;
    l->confirmed = true;
    l->watch = (struct watch){.fd = -1, .fn = link_on_event, .arg = l};
    l->give_up = (struct timer){.fn = link_on_give_up, .arg = l};
    l->free_later = (struct deferred){.fn = link_free, .arg = l};
    LIST_PUSH(&a->links, l, next);
    links_count(a, l->state == LINK_CONNECTING, l->state != LINK_CONNECTING);
    return l;
}

static void tell_verdict(struct attachment *a, const struct link *l, const struct net_verdict *v,
                         int socket) {
    struct wire_out o;
    bool told = v->errnum && v->errnum != NET_TOO_MANY;
    a_verdict_put(&o, &(struct a_verdict){.id = l->id,
                                          .errnum = (uint32_t)v->errnum,
                                          .check = v->check,
                                          .rule = v->rule,
                                          .op = told ? v->op : "",
                                          .detail = told ? v->detail : "",
                                          .socket = socket});
    attach_send(a, &o);
}

/* Verdict and socket in one, where the socket is there at once: init then wakes once. */
static void link_connect(struct link *l, const struct net_verdict *v) {
    struct attachment *a = l->of;
    struct loop *loop = a->gate->loop;
    struct err e;
    int errnum = outside_connect(&l->address, l->port, &l->fd);
    if (errnum == 0 || (errnum == EINPROGRESS && outside_is_over(l->fd)))
        errnum = link_errnum(l);
    bool with_socket = errnum == 0 && a->chan.version >= VERDICT_SOCKET_SINCE;
    tell_verdict(a, l, v, with_socket ? l->fd : -1);
    if (a->over)
        return;
    if (errnum == 0 && !with_socket)
        tell_result(l, 0);
    if (errnum == 0)
        link_opened(l);
    else if (errnum != EINPROGRESS)
        link_fail(l, errnum);
    else if (loop_watch(loop, &l->watch, l->fd, EPOLLOUT, &e) < 0)
        link_fail(l, NET_TOO_MANY);
    else
        loop_timer_in_ms(loop, &l->give_up, NET_CONNECT_MS);
}

/* ---- judging ---- */

static void refuse_limit(struct net_verdict *v, const struct link *l, const char *detail) {
    char name[NET_NAME_SIZE];
    memcpy(name, v->name, sizeof name);
    net_verdict_refuse(v, &l->address, l->port, name, EACCES, "network:limit", detail);
}

/* An allowed connect that is too much all the same. */
static void limit(struct attachment *a, const struct link *l, struct net_verdict *v) {
    uint64_t now = now_ms();
    char words[120];
    unsigned own = a->npending + a->nopen;
    if (a->npending >= NET_PENDING || own >= net_policy_connections(&a->policy) ||
        !tenant_has_room(a->gate, a->tenant, own)) {
        v->errnum = NET_TOO_MANY;
    } else if (!net_bucket_take(&a->new_bucket, now)) {
        snprintf(words, sizeof words,
                 "a sandbox may make %d connections a second, %d at once; wait and try again",
                 NET_NEW_PER_SECOND, NET_NEW_BURST);
        refuse_limit(v, l, words);
    } else if (!net_bucket_take(&a->tenant->new_bucket, now)) {
        snprintf(words, sizeof words,
                 "the sandboxes of one tenant may make %d connections a second; wait and try again",
                 NET_TENANT_NEW_PER_SECOND);
        refuse_limit(v, l, words);
    } else if (!net_seen_add(&a->seen, &l->address, l->port, now)) {
        snprintf(words, sizeof words,
                 "a sandbox may connect to %d destinations a minute; wait and try again",
                 NET_DESTINATIONS);
        refuse_limit(v, l, words);
    }
}

static void judge_link(struct attachment *a, const struct link *l, struct net_verdict *v) {
    const struct net_own own = gate_own(a->gate);
    net_judge_connect(&a->policy, a->answers, &own, &l->address, l->port, now_ms(), v);
    if (v->errnum == 0)
        limit(a, l, v);
}

static void note_link(struct attachment *a, const struct link *l, const struct net_verdict *v) {
    char target[301];
    net_target_text(&l->address, l->port, v->name, target, sizeof target);
    note_tell(a, &(struct note){l->process, v->errnum != 0, target, v->rule});
}

int links_ask(struct attachment *a, struct wire_in *in, struct err *e) {
    struct a_ask m;
    struct net_verdict v;
    if (a_ask_get(in, &m, e) < 0)
        return -1;
    struct link l = {.state = LINK_CONNECTING,
                     .id = m.id,
                     .process = m.process,
                     .port = (uint16_t)m.port,
                     .fd = -1};
    if (m.address.len != sizeof l.address.b)
        return err_set(e, EPROTO, "an address of %zu bytes", m.address.len);
    if (link_find(a, m.id))
        return err_set(e, EPROTO, "connection %u is there already", m.id);
    memcpy(l.address.b, m.address.data, sizeof l.address.b);
    a->gate->counts.asks++;
    if (net_bucket_take(&a->ask_bucket, now_ms()))
        judge_link(a, &l, &v);
    else
        v = (struct net_verdict){.errnum = NET_TOO_MANY}; /* judging costs time, that of all */
    a->gate->counts.refused += v.errnum != 0;
    gate_counted(a->gate);
    memcpy(l.rule, v.rule, sizeof l.rule);
    memcpy(l.name, v.name, sizeof l.name);
    l.check = v.check;
    if (v.errnum == 0)
        link_connect(link_new(a, &l), &v);
    else
        tell_verdict(a, &l, &v, -1);
    links_tell_open(a, false); /* after the connect: it wakes the server */
    if (v.errnum != NET_TOO_MANY)
        note_link(a, &l, &v);
    return 0;
}

/* A result may have crossed it: then init closes what it gets. */
int links_withdraw(struct attachment *a, struct wire_in *in, struct err *e) {
    struct a_withdraw m;
    if (a_withdraw_get(in, &m, e) < 0)
        return -1;
    struct link *l = link_find(a, m.id);
    if (l)
        link_forget(l);
    return 0;
}

int links_end(struct attachment *a, struct wire_in *in, struct err *e) {
    struct a_end m;
    if (a_end_get(in, &m, e) < 0)
        return -1;
    struct link *l = link_find(a, m.id);
    if (!l)
        return 0;
    a->gate->counts.bytes_out += m.bytes_out;
    a->gate->counts.bytes_in += m.bytes_in;
    link_forget(l);
    return 0;
}

int links_hello(struct attachment *a, struct wire_in *in, struct err *e) {
    struct a_hello m;
    struct net_verdict v;
    struct wire_out o;
    if (a_hello_get(in, &m, e) < 0)
        return -1;
    struct link *l = link_find(a, m.id);
    if (!l || l->state == LINK_CONNECTING)
        return 0; /* it ended meanwhile */
    if (net_bucket_take(&a->hello_bucket, now_ms()))
        net_judge_hello(&a->policy, (enum net_check)m.check, &l->address, l->port, m.name, &v);
    else
        refuse_limit(&v, l,
                     "the connections of this sandbox say too many names; make fewer new "
                     "connections, and keep to one host on each");
    a_helloed_put(&o, &(struct a_helloed){.id = l->id,
                                          .allowed = v.errnum == 0,
                                          .rule = v.rule,
                                          .op = v.errnum ? v.op : "",
                                          .detail = v.errnum ? v.detail : ""});
    attach_send(a, &o);
    a->gate->counts.refused += v.errnum != 0;
    gate_counted(a->gate);
    note_link(a, l, &v);
    if (v.errnum == 0)
        snprintf(l->name, sizeof l->name, "%s", m.name);
    return 0;
}

/* ---- what stands ---- */

/* Whether it has to go; then init is told. */
static bool link_judge(struct link *l) {
    struct attachment *a = l->of;
    const struct net_own own = gate_own(a->gate);
    struct net_verdict v;
    struct wire_out o;
    net_judge_again(&a->policy, &own, &l->address, l->port, l->rule, l->check, l->name, &v);
    if (v.errnum == 0)
        return false;
    note_link(a, l, &v);
    if (l->state == LINK_CONNECTING) {
        link_fail(l, v.errnum);
        return true;
    }
    l->state = LINK_CLOSING;
    a->nclosing++;
    a_close_put(&o, &(struct a_close){.id = l->id, .rule = v.rule, .op = v.op, .detail = v.detail});
    attach_send(a, &o);
    return true;
}

unsigned links_judge(struct attachment *a) {
    unsigned closed = 0;
    for (struct link *l = a->links, *next; l; l = next) {
        next = l->next;
        if (l->state != LINK_CLOSING)
            closed += link_judge(l);
    }
    return closed;
}

int links_stands(struct attachment *a, struct wire_in *in, struct err *e) {
    struct a_stands m;
    if (a_stands_get(in, &m, e) < 0)
        return -1;
    if (m.address.len != sizeof(struct net_addr))
        return err_set(e, EPROTO, "an address of %zu bytes", m.address.len);
    struct link *l = link_find(a, m.id);
    if (l && l->confirmed)
        return err_set(e, EPROTO, "connection %u stands twice", m.id);
    if (l)
        link_forget(l); /* what init says of it is newer */
    if (a->npending + a->nopen >= NET_CONNECTIONS + NET_PENDING)
        return err_set(e, EPROTO, "more connections than there can be");
    struct link from = {.state = LINK_OPEN,
                        .id = m.id,
                        .port = (uint16_t)m.port,
                        .check = (enum net_check)m.check,
                        .fd = -1};
    memcpy(from.address.b, m.address.data, sizeof from.address.b);
    snprintf(from.rule, sizeof from.rule, "%s", m.rule);
    snprintf(from.name, sizeof from.name, "%s", m.name);
    link_judge(link_new(a, &from));
    links_tell_open(a, false);
    return 0;
}

void links_renew(struct attachment *a) {
    for (struct link *l = a->links, *next; l; l = next) {
        next = l->next;
        l->confirmed = false;
        if (l->state == LINK_CONNECTING)
            link_forget(l);
    }
}

void links_confirmed(struct attachment *a) {
    for (struct link *l = a->links, *next; l; l = next) {
        next = l->next;
        if (!l->confirmed)
            link_forget(l);
    }
}

void links_free(struct attachment *a) {
    while (a->links)
        link_forget(a->links);
}
