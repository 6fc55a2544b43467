/* See network.h. The gate is another process and may be away: whoever waits has a deadline, and
 * what it was asked for is asked again of the next one. */

#include "engine/core/network.h"

#include "base/fd.h"
#include "base/hash.h"
#include "base/log.h"
#include "engine/core/engine.h"
#include "engine/core/sandbox.h"
#include "engine/network/terms.h"
#include "net/bounds.h"

#include <string.h>

#define ANSWER_MS     2000u
#define LAYER         "egress"
#define LAYER_MISSING 2

bool network_is_up(const struct engine *g) {
    return g->gate.chan.fd >= 0;
}

/* ---- who waits ---- */

static void network_tell(struct sandbox *s, const struct err *why) {
    struct network *n = &s->network;
    network_fn *done = n->done;
    n->done = NULL;
    loop_timer_stop(s->engine->loop, &n->deadline);
    if (done)
        done(n->arg, why);
}

static void network_fail(struct sandbox *s, const char *what) {
    struct err e;
    if (!s->network.done) {
        log_warn("no network for a sandbox id=%llu why=%s", (unsigned long long)s->id,
                 log_text(what));
        return;
    }
    err_user(&e, "network_unavailable", "the network is not as asked for: %s", what);
    network_tell(s, &e);
}

static void network_look(struct sandbox *s) {
    const struct network *n = &s->network;
    if (n->done && n->state == NETWORK_THERE && n->in_force == n->serial)
        network_tell(s, NULL);
}

static void network_on_deadline(struct timer *t) {
    struct sandbox *s = t->arg;
    network_fail(s, network_is_up(s->engine) ? "the gate did not answer in time"
                                             : "the gate is away, and did not come back in time");
}

void network_leave(struct sandbox *s, const void *arg) {
    struct network *n = &s->network;
    if (n->done && n->arg == arg) {
        n->done = NULL;
        loop_timer_stop(s->engine->loop, &n->deadline);
    }
}

/* ---- to the gate ---- */

/* False: there is none, and those who waited were told. */
static bool policy_fd(struct sandbox *s, int *ret) {
    const struct network_terms *t = s->network.terms;
    struct err e;
    if (memfd_of("network", t->packed.data, t->packed.len, ret, &e) == 0)
        return true;
    network_fail(s, e.text);
    return false;
}

static void ask_attach(struct sandbox *s) {
    struct network *n = &s->network;
    struct wire_out o;
    AUTO_FD fd = -1;
    if (!policy_fd(s, &fd))
        return;
    n->state = NETWORK_ASKED;
    n->in_force = n->serial; /* with G_ATTACHED */
    g_attach_put(&o, &(struct g_attach){.sandbox = s->id,
                                        .policy = fd,
                                        .tenant = hash_text(s->guest ? s->guest->tenant : "")});
    chan_send(&s->engine->gate.chan, &o);
}

static void ask_policy(struct sandbox *s) {
    const struct network *n = &s->network;
    struct wire_out o;
    AUTO_FD fd = -1;
    if (!policy_fd(s, &fd))
        return;
    g_policy_put(&o, &(struct g_policy){.sandbox = s->id, .serial = n->serial, .policy = fd});
    chan_send(&s->engine->gate.chan, &o);
}

int network_set(struct sandbox *s, const struct network_terms *terms, network_fn *done, void *arg,
                struct err *e) {
    struct network *n = &s->network;
    struct wire_out o;
    i_network_put(&o, &(struct i_network){.gate = -1});
    if (n->done)
        return err_user(e, "sandbox_busy", "another change of its network is under way");
    if (!wire_reaches(&o, s->version))
        return err_user(e, "network_unavailable",
                        "an older build of cloche made this sandbox, and it cannot have a network; "
                        "make a new one");
    if (network_possible(s->engine, e) < 0)
        return -1;
    n->terms = terms;
    n->serial++;
    n->done = done;
    n->arg = arg;
    n->deadline = (struct timer){.fn = network_on_deadline, .arg = s};
    loop_timer_in_ms(s->engine->loop, &n->deadline, ANSWER_MS);
    if (n->state == NETWORK_NONE)
        n->state = NETWORK_AWAY;
    if (!network_is_up(s->engine))
        return 0;
    if (n->state == NETWORK_AWAY)
        ask_attach(s);
    else
        ask_policy(s);
    return 0;
}

void network_inherit(struct sandbox *s, const struct network_terms *terms) {
    struct network *n = &s->network;
    n->terms = terms;
    n->serial = 1;
    n->state = NETWORK_AWAY;
    if (network_is_up(s->engine))
        ask_attach(s);
}

void network_end(struct sandbox *s) {
    struct network *n = &s->network;
    struct wire_out o;
    if (n->state == NETWORK_NONE)
        return;
    n->done = NULL;
    loop_timer_stop(s->engine->loop, &n->deadline);
    if (n->state != NETWORK_AWAY && network_is_up(s->engine)) {
        g_forget_put(&o, &(struct g_forget){.sandbox = s->id});
        chan_send(&s->engine->gate.chan, &o);
    }
    n->state = NETWORK_NONE;
    n->terms = NULL;
}

/* ---- to init ---- */

static void network_on_taken(void *arg, struct wire_in *in) {
    struct sandbox *s = arg;
    struct network *n = &s->network;
    struct i_error no;
    struct err e;
    n->handing--;
    if (!in)
        return; /* it ends */
    bool is_last = n->handing == 0 && n->state == NETWORK_HANDED;
    if (is_last && in->type == WIRE_I_REPLY) {
        n->state = NETWORK_THERE;
        network_look(s);
    } else if (is_last) {
        n->state = NETWORK_AWAY;
        i_error_get(in, &no, &e);
        network_fail(s, no.why);
    }
    if (s->guest) /* it may wait for init to have answered everything */
        s->guest->kind->answer(s->guest->owner, ASKED_NETWORK, in);
}

/* A channel, or -1: the gate is gone. */
static void hand(struct sandbox *s, int channel) {
    struct network *n = &s->network;
    struct wire_out o;
    i_network_put(&o, &(struct i_network){.gate = channel});
    if (sandbox_ask_for(s, &o, network_on_taken, s)) {
        n->handing++;
        return;
    }
    n->state = NETWORK_AWAY;
    network_fail(s, "it has too much to answer");
}

/* ---- from the gate ---- */

static void take_attached(struct engine *g, struct wire_in *in) {
    struct g_attached m;
    struct err e;
    struct sandbox *s = g_attached_get(in, &m, &e) < 0 ? NULL : sandbox_find(g, m.sandbox);
    if (!s || s->network.state != NETWORK_ASKED)
        return; /* it has ended meanwhile */
    if (m.channel < 0) {
        s->network.state = NETWORK_AWAY;
        network_fail(s, *m.why ? m.why : "the gate refused it");
        return;
    }
    s->network.state = NETWORK_HANDED;
    hand(s, m.channel);
}

static void take_in_force(struct engine *g, struct wire_in *in) {
    struct g_in_force m;
    struct err e;
    struct sandbox *s = g_in_force_get(in, &m, &e) < 0 ? NULL : sandbox_find(g, m.sandbox);
    if (!s)
        return;
    s->network.in_force = m.serial;
    network_look(s);
}

/* A change that waits comes with the new channel; otherwise the next change brings the channel. */
static void take_lost(struct engine *g, struct wire_in *in) {
    struct g_lost m;
    struct err e;
    struct sandbox *s = g_lost_get(in, &m, &e) < 0 ? NULL : sandbox_find(g, m.sandbox);
    if (!s || (s->network.state != NETWORK_THERE && s->network.state != NETWORK_HANDED))
        return;
    s->network.state = NETWORK_AWAY;
    s->network.open = 0;
    if (s->network.done)
        ask_attach(s);
}

static void take_note(struct engine *g, struct wire_in *in) {
    struct g_note m;
    struct err e;
    const struct sandbox *s = g_note_get(in, &m, &e) < 0 ? NULL : sandbox_find(g, m.sandbox);
    if (s && g->gate.on_note)
        g->gate.on_note(g->gate.note_arg, s, &m);
}

static void take_open(struct engine *g, struct wire_in *in) {
    struct g_open m;
    struct err e;
    struct sandbox *s = g_open_get(in, &m, &e) < 0 ? NULL : sandbox_find(g, m.sandbox);
    if (s)
        s->network.open = m.connections;
}

static void on_gate(struct chan *c, struct wire_in *in) {
    struct engine *g = c->arg;
    struct g_counts counts;
    struct err e;
    switch ((int)in->type) {
    case WIRE_G_ATTACHED:
        take_attached(g, in);
        break;
    case WIRE_G_IN_FORCE:
        take_in_force(g, in);
        break;
    case WIRE_G_LOST:
        take_lost(g, in);
        break;
    case WIRE_G_NOTE:
        take_note(g, in);
        break;
    case WIRE_G_OPEN:
        take_open(g, in);
        break;
    case WIRE_G_COUNTS:
        if (g_counts_get(in, &counts, &e) == 0)
            g->gate.counts = counts;
        break;
    default:
        log_error("gate sent message=%s", wire_type_name(in->type));
    }
}

struct g_counts network_counts(const struct engine *g) {
    const struct g_counts *a = &g->gate.counts, *b = &g->gate.before;
    return (struct g_counts){.asks = a->asks + b->asks,
                             .refused = a->refused + b->refused,
                             .connect_errors = a->connect_errors + b->connect_errors,
                             .names = a->names + b->names,
                             .names_refused = a->names_refused + b->names_refused,
                             .names_failed = a->names_failed + b->names_failed,
                             .open = a->open,
                             .bytes_out = a->bytes_out + b->bytes_out,
                             .bytes_in = a->bytes_in + b->bytes_in};
}

/* ---- the gate comes and goes ---- */

static void gate_gone(struct engine *g) {
    if (!network_is_up(g))
        return;
    chan_done(&g->gate.chan);
    g->gate.before = network_counts(g);
    g->gate.counts = (struct g_counts){0};
    for (struct sandbox *s = g->sandboxes; s; s = s->next) {
        struct network *n = &s->network;
        if (n->state == NETWORK_NONE || n->state == NETWORK_AWAY)
            continue;
        bool has_channel = n->state == NETWORK_HANDED || n->state == NETWORK_THERE;
        n->state = NETWORK_AWAY;
        n->open = 0;
        if (has_channel)
            hand(s, -1);
    }
}

static void on_gate_gone(struct chan *c, const struct err *why) {
    log_warn("the gate is gone why=%s", log_text(why->text));
    gate_gone(c->arg);
}

void network_take_gate(struct engine *g, struct wire_in *in) {
    struct w_gate m;
    struct err e;
    if (w_gate_get(in, &m, &e) < 0) {
        log_error("no gate error=%s", log_text(e.text));
        return;
    }
    gate_gone(g);
    if (m.gate < 0)
        return;
    int fd = wire_keep(in, m.gate);
    g->gate.chan = (struct chan){.fd = -1, .on_msg = on_gate, .on_gone = on_gate_gone, .arg = g};
    if (chan_init(&g->gate.chan, g->loop, &fd, &e) < 0) {
        log_error("no gate error=%s", log_text(e.text));
        fd_close(&fd);
        return;
    }
    for (struct sandbox *s = g->sandboxes; s; s = s->next)
        if (s->network.state == NETWORK_AWAY)
            ask_attach(s);
}

void network_init(struct engine *g) {
    g->gate.chan = (struct chan){.fd = -1};
}

int network_possible(const struct engine *g, struct err *e) {
    const struct engine_about *a = &g->about;
    for (unsigned i = 0; i < a->nlayers; i++)
        if (strcmp(a->layers[i].name, LAYER) == 0 && a->layers[i].state == LAYER_MISSING)
            return err_user(e, "network_unavailable",
                            "sandboxes cannot have a network on this machine: %s (see cloche "
                            "doctor)",
                            a->layers[i].how);
    return 0;
}

uint64_t network_bytes(const struct sandbox *s) {
    return (uint64_t)s->network.open * NET_CHARGE_BYTES;
}

bool network_ask_used(struct sandbox *s, void (*fn)(void *arg, struct wire_in *in), void *arg) {
    struct wire_out o;
    wire_begin(&o, WIRE_I_TRAFFIC);
    return s->network.state != NETWORK_NONE && s->nasked < SANDBOX_MOST_ASKED &&
           sandbox_ask_for(s, &o, fn, arg);
}

void network_read_used(struct wire_in *in, struct network_used *ret) {
    struct i_reply_traffic m;
    struct err e;
    if (in && i_reply_traffic_get(in, &m, &e) == 0)
        network_used_take(ret, m.records.data, m.records.len);
}
