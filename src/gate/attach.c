/* See attach.h. SECURITY: a sandbox's channel is fed by its init, which sits beside hostile code.
 * What no init says ends the attachment; what may come often has bounds of its own (net/bounds.h),
 * held here whatever init holds; all sandboxes together have a share of each turn; and one that
 * does not read its answers is not read. */

#include "gate/attach.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/log.h"
#include "gate/links.h"
#include "gate/names.h"
#include "gate/tenants.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#define POLICY_BYTES (1u << 20)
#define UNREAD_MOST  65536 /* bytes of answers that wait for an init */
/* For connections to end; init ends an usher that does not within half of it, and what does not run
 * then passes nothing either. */
#define CLOSING_MS 1000

/* ---- what a sandbox says ---- */

void attach_send(struct attachment *a, const struct wire_out *o) {
    chan_send(&a->chan, o);
    if (a->chan.queued > UNREAD_MOST && !a->chan.paused)
        chan_pause(&a->chan);
}

static void sandbox_on_drain(struct chan *c) {
    if (c->paused)
        chan_resume(c);
}

/* Not by the server's will. */
static void attach_lose(struct attachment *a) {
    struct wire_out o;
    if (a->over)
        return;
    g_lost_put(&o, &(struct g_lost){.sandbox = a->sandbox});
    attach_end(a);
    chan_send(&a->gate->server, &o);
}

static int serve_sandbox(struct attachment *a, struct wire_in *in, struct err *e) {
    if (in->type == WIRE_A_STANDS)
        return a->heard ? err_set(e, EPROTO, "it stands too late") : links_stands(a, in, e);
    if (!a->heard)
        links_confirmed(a);
    a->heard = true;
    switch ((int)in->type) {
    case WIRE_A_ASK:
        return links_ask(a, in, e);
    case WIRE_A_WITHDRAW:
        return links_withdraw(a, in, e);
    case WIRE_A_NAME:
        return names_ask(a, in, e);
    case WIRE_A_HELLO:
        return links_hello(a, in, e);
    case WIRE_A_END:
        return links_end(a, in, e);
    default:
        return err_set(e, EPROTO, "not a message of an init");
    }
}

static void sandbox_on_msg(struct chan *c, struct wire_in *in) {
    struct attachment *a = c->arg;
    struct err e;
    if (serve_sandbox(a, in, &e) == 0)
        return;
    log_warn("sandbox said what no init says, it has no network from here on sandbox=%" PRIu64
             " message=%s error=%s",
             a->sandbox, wire_type_name(in->type), log_text(e.text));
    attach_lose(a);
}

static void sandbox_on_gone(struct chan *c, const struct err *why) {
    (void)why;
    attach_lose(c->arg);
}

/* ---- what the server says ---- */

static int read_policy(int fd, struct net_policy *ret, struct err *e) {
    AUTO_BUF b = BUF_INIT;
    char *to = buf_reserve(&b, POLICY_BYTES);
    size_t have = 0;
    for (ssize_t n = 1; n > 0 && have < POLICY_BYTES; have += (size_t)(n > 0 ? n : 0)) {
        n = pread(fd, to + have, POLICY_BYTES - have, (off_t)have);
        if (n < 0 && errno != EINTR)
            return err_sys(e, "read a policy");
    }
    buf_commit(&b, have);
    return net_policy_decode(b.data, b.len, ret, e);
}

static struct attachment *attach_find(struct gate *g, uint64_t sandbox) {
    struct attachment *a = g->all;
    while (a && a->sandbox != sandbox)
        a = a->next;
    return a;
}

static void attach_free(struct deferred *d) {
    struct attachment *a = d->arg;
    net_policy_done(&a->policy);
    net_answers_free(a->answers);
    free(a);
}

void attach_end(struct attachment *a) {
    if (a->over)
        return;
    a->over = true;
    chan_done(&a->chan);
    names_free(a);
    links_free(a);
    links_tell_open(a, true);
    loop_timer_stop(a->gate->loop, &a->change.patience);
    tenant_leave(a->gate, a->tenant);
    LIST_REMOVE(&a->gate->all, a, next);
    a->gate->nsandboxes--;
    loop_defer(a->gate->loop, &a->free_later);
}

static void change_on_patience(struct timer *t) {
    attach_closed(t->arg);
}

static struct attachment *attach_new(struct gate *g, const struct g_attach *m, struct err *e) {
    if (g->nsandboxes == GATE_SANDBOXES_MOST) {
        err_set(e, EAGAIN, "%d sandboxes have a network already", GATE_SANDBOXES_MOST);
        return NULL;
    }
    struct attachment *a = xcalloc(1, sizeof *a);
    *a = (struct attachment){
        .gate = g,
        .sandbox = m->sandbox,
        .tenant = tenant_join(g, m->tenant),
        .chan = {.fd = -1, .gone = true},
        .policy = NET_POLICY_INIT,
        .answers = net_answers_new(),
        .ask_bucket = NET_BUCKET(NET_ASKS_PER_SECOND, NET_ASKS_BURST),
        .new_bucket = NET_BUCKET(NET_NEW_PER_SECOND, NET_NEW_BURST),
        .name_bucket = NET_BUCKET(NET_ASKED_PER_SECOND, NET_ASKED_BURST),
        .hello_bucket = NET_BUCKET(NET_HELLOS_PER_SECOND, NET_HELLOS_BURST),
        .change.patience = {.fn = change_on_patience, .arg = a},
        .free_later = {.fn = attach_free, .arg = a},
    };
    notes_init(&a->notes);
    LIST_PUSH(&g->all, a, next);
    g->nsandboxes++;
    return a;
}

static void take_policy(struct attachment *a, struct net_policy *p) {
    net_policy_done(&a->policy);
    a->policy = *p;
    *p = (struct net_policy)NET_POLICY_INIT;
    net_answers_prune(a->answers, &a->policy);
    struct wire_out o;
    a_limits_put(&o, &(struct a_limits){.connections = net_policy_connections(&a->policy),
                                        .bytes = a->policy.bytes,
                                        .unreachable = a->policy.unreachable});
    attach_send(a, &o);
}

/* A channel for the sandbox's init, in place of one that it may have had. */
static int attach_open(struct attachment *a, int *ret_its, struct err *e) {
    int pair[2];
    if (wire_pair(pair, e) < 0)
        return -1;
    AUTO_FD ours = pair[0];
    AUTO_FD its = pair[1];
    chan_done(&a->chan);
    names_free(a);
    links_renew(a);
    a->change.waits = false;
    a->heard = false;
    a->told_open = 0;
    a->chan = (struct chan){.fd = -1,
                            .on_msg = sandbox_on_msg,
                            .on_gone = sandbox_on_gone,
                            .on_drain = sandbox_on_drain,
                            .arg = a};
    if (chan_init(&a->chan, a->gate->loop, &ours, e) < 0)
        return -1;
    chan_set_share(&a->chan, &a->gate->reading, a->tenant->id);
    *ret_its = fd_take(&its);
    return 0;
}

static int attach(struct gate *g, const struct g_attach *m, int *ret_its, struct err *e) {
    AUTO_NET_POLICY p = NET_POLICY_INIT;
    if (read_policy(m->policy, &p, e) < 0)
        return -1;
    struct attachment *a = attach_find(g, m->sandbox);
    a = a ? a : attach_new(g, m, e);
    if (!a)
        return -1;
    if (attach_open(a, ret_its, e) < 0) {
        attach_end(a);
        return -1;
    }
    take_policy(a, &p);
    return 0;
}

static int take_attach(struct gate *g, struct wire_in *in, struct err *e) {
    struct g_attach m;
    struct err why = {.text = ""};
    struct wire_out o;
    AUTO_FD its = -1;
    if (g_attach_get(in, &m, e) < 0)
        return -1;
    (void)attach(g, &m, &its, &why);
    g_attached_put(&o, &(struct g_attached){.sandbox = m.sandbox, .channel = its, .why = why.text});
    chan_send(&g->server, &o);
    return 0;
}

/* The change is in force: nothing passes any more that it does not allow. */
static void tell_in_force(struct attachment *a) {
    struct wire_out o;
    if (!a->change.waits)
        return;
    a->change.waits = false;
    loop_timer_stop(a->gate->loop, &a->change.patience);
    g_in_force_put(&o, &(struct g_in_force){.sandbox = a->sandbox,
                                            .serial = a->change.serial,
                                            .closed = a->change.closed});
    chan_send(&a->gate->server, &o);
}

void attach_closed(struct attachment *a) {
    if (!a->over)
        tell_in_force(a);
}

/* SECURITY: what cannot be read allows nothing. */
static int take_another_policy(struct gate *g, struct wire_in *in, struct err *e) {
    struct g_policy m;
    struct err why;
    AUTO_NET_POLICY p = NET_POLICY_INIT;
    if (g_policy_get(in, &m, e) < 0)
        return -1;
    if (read_policy(m.policy, &p, &why) < 0)
        log_error("policy cannot be read, nothing is allowed sandbox=%" PRIu64 " error=%s",
                  m.sandbox, log_text(why.text));
    struct attachment *a = attach_find(g, m.sandbox);
    if (!a)
        return 0;     /* G_LOST is on its way */
    tell_in_force(a); /* the one before, whose answer nobody waits for */
    take_policy(a, &p);
    a->change.waits = true;
    a->change.serial = m.serial;
    a->change.closed = links_judge(a);
    if (a->nclosing)
        loop_timer_in_ms(g->loop, &a->change.patience, CLOSING_MS);
    else
        tell_in_force(a);
    return 0;
}

static int take_forget(struct gate *g, struct wire_in *in, struct err *e) {
    struct g_forget m;
    if (g_forget_get(in, &m, e) < 0)
        return -1;
    struct attachment *a = attach_find(g, m.sandbox);
    if (a)
        attach_end(a);
    return 0;
}

int attach_serve(struct gate *g, struct wire_in *in, struct err *e) {
    switch ((int)in->type) {
    case WIRE_G_ATTACH:
        return take_attach(g, in, e);
    case WIRE_G_POLICY:
        return take_another_policy(g, in, e);
    case WIRE_G_FORGET:
        return take_forget(g, in, e);
    default:
        return err_set(e, EPROTO, "not a message of a server");
    }
}
