/* See names.h. SECURITY: the usher reads hostile bytes; what comes from it is bounded here
 * again. */

#include "base/clock.h"
#include "init/internal.h"

#include <netinet/in.h>

static void names_reply(struct init *b, const struct u_named *m) {
    struct wire_out o;
    u_named_put(&o, m);
    usher_tell(&b->network.usher, &o);
}

static void answer_failed(struct init *b, uint32_t number) {
    enum { SERVFAIL = 2 };
    names_reply(b, &(struct u_named){.id = number, .rcode = SERVFAIL});
}

#define PATIENCE_MS 10000 /* with a gate that does not answer */

static struct name_question *free_question(struct name_table *t, uint64_t now) {
    for (unsigned i = 0; i < NET_QUESTIONS; i++) {
        if (!t->all[i].waits || now - t->all[i].since_ms > PATIENCE_MS)
            return &t->all[i];
    }
    return NULL;
}

void names_on_name(struct init *b, const struct u_name *m) {
    struct network *n = &b->network;
    struct name_table *t = &n->asked;
    uint64_t now = now_ms();
    struct name_question *q = free_question(t, now);
    struct wire_out o;
    if (!q || !net_bucket_take(&t->rate, now)) {
        answer_failed(b, m->id);
        return;
    }
    *q = (struct name_question){.waits = true,
                                .id = t->serial++ * NET_QUESTIONS + (uint32_t)(q - t->all),
                                .number = m->id,
                                .port = (uint16_t)m->port,
                                .family = m->family == AF_INET6 ? AF_INET6 : AF_INET,
                                .since_ms = now};
    a_name_put(&o, &(struct a_name){.id = q->id, .type = m->type, .name = m->name});
    if (!network_tell_gate(n, &o)) {
        q->waits = false;
        answer_failed(b, m->id);
    }
}

/* Mostly it is the one who asked before. */
static pid_t find_asker(struct network *n, const struct name_question *q) {
    struct name_table *t = &n->asked;
    if (!q->port)
        return 0;
    struct who found = who_asks(n->diag, q->family, q->port, t->asker, false);
    if (!found.pid && net_bucket_take(&t->searches, now_ms()))
        found = who_asks(n->diag, q->family, q->port, t->asker, true);
    if (found.pid)
        t->asker = found;
    return found.pid;
}

static void names_tell_refusal(struct init *b, const struct name_question *q,
                               const struct a_named *m) {
    struct network *n = &b->network;
    n->traffic.all[traffic_account(&n->traffic, m->rule)].refused++;
    if (!network_is_news(n, m->op))
        return;
    pid_t pid = find_asker(n, q);
    uint32_t process = pid ? procs_number(&b->procs, pid) : 0;
    network_tell_news(b, process, m->op, m->detail, m->rule);
}

void names_on_named(struct init *b, const struct a_named *m) {
    struct name_question *q = &b->network.asked.all[m->id % NET_QUESTIONS];
    if (!q->waits || q->id != m->id)
        return;
    q->waits = false;
    names_reply(b,
                &(struct u_named){
                    .id = q->number, .rcode = m->rcode, .ttl = m->ttl, .addresses = m->addresses});
    if (*m->op)
        names_tell_refusal(b, q, m);
}

void names_gate_lost(struct init *b) {
    struct name_table *t = &b->network.asked;
    for (unsigned i = 0; i < NET_QUESTIONS; i++) {
        if (t->all[i].waits)
            answer_failed(b, t->all[i].number);
        t->all[i].waits = false;
    }
}

void names_usher_lost(struct init *b) {
    for (unsigned i = 0; i < NET_QUESTIONS; i++)
        b->network.asked.all[i].waits = false;
}
