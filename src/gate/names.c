/* See names.h. The answer is judged with the policy of the moment in which it comes, and only the
 * addresses that may be told are told and remembered. */

#include "gate/names.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/list.h"
#include "gate/attach.h"
#include "gate/resolver.h"
#include "net/dns.h"
#include "net/judge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REFUSED_TTL_S 5 /* the policy may be another then */

struct name_ask {
    struct name_ask *next;
    struct attachment *of; /* borrowed */
    struct resolver_ask ask;
    uint32_t id, process;
    uint16_t type;
    char name[NET_NAME_SIZE];
};

static void answer(const struct name_ask *n, const struct reply *r, const struct net_verdict *v) {
    struct wire_out o;
    a_named_put(&o, &(struct a_named){.id = n->id,
                                      .rcode = r->rcode,
                                      .ttl = r->ttl_s,
                                      .addresses = {r->at, r->n * sizeof r->at[0]},
                                      .rule = v ? v->rule : "",
                                      .op = v && v->errnum ? v->op : "",
                                      .detail = v && v->errnum ? v->detail : ""});
    attach_send(n->of, &o);
}

static void answer_code(const struct name_ask *n, enum net_rcode rcode) {
    const struct reply r = {.rcode = rcode};
    answer(n, &r, NULL);
}

static void name_refuse(const struct name_ask *n, const struct net_verdict *v) {
    struct reply r = {.rcode = NET_RCODE_NO_NAME, .ttl_s = REFUSED_TTL_S};
    struct attachment *a = n->of;
    char target[sizeof "name " + NET_NAME_SIZE];
    a->gate->counts.names_refused++;
    if (a->policy.unreachable) {
        r.rcode = NET_RCODE_OK;
        r.at[0] = net_sentinel(n->type == NET_DNS_AAAA);
        r.n = n->type == NET_DNS_A || n->type == NET_DNS_AAAA;
    }
    snprintf(target, sizeof target, "name %s", n->name);
    note_tell(a, &(struct note){n->process, true, target, v->rule});
    answer(n, &r, v);
}

/* False: it was refused, and that is told. */
static bool judge(const struct name_ask *n, struct net_verdict *v) {
    net_judge_name(&n->of->policy, n->name, v);
    if (v->errnum)
        name_refuse(n, v);
    return v->errnum == 0;
}

static void names_on_reply(struct resolver_ask *ask, const struct reply *r) {
    struct name_ask *n = ask->arg;
    struct attachment *a = n->of;
    const struct net_own own = gate_own(a->gate);
    struct reply told = {.rcode = r->rcode, .ttl_s = r->ttl_s};
    struct net_verdict v;
    LIST_REMOVE(&a->names, n, next);
    a->nnames--;
    a->gate->counts.names_failed += r->rcode == NET_RCODE_FAILED;
    if (judge(n, &v)) {
        uint64_t now = now_ms();
        for (unsigned i = 0; i < r->n; i++) {
            if (!net_judge_answer(&a->policy, &own, &r->at[i]))
                continue;
            net_answers_add(a->answers, n->name, &r->at[i], r->ttl_s, now);
            told.at[told.n++] = r->at[i];
        }
        answer(n, &told, &v);
    }
    free(n);
}

static void look_up(const struct name_ask *q) {
    struct attachment *a = q->of;
    struct name_ask *n = xmalloc(sizeof *n);
    *n = *q;
    n->ask = (struct resolver_ask){.fn = names_on_reply, .arg = n};
    LIST_PUSH(&a->names, n, next);
    a->nnames++;
    resolver_ask(a->gate->resolver, n->name, n->type, &n->ask);
}

int names_ask(struct attachment *a, struct wire_in *in, struct err *e) {
    struct a_name m;
    struct net_verdict v;
    if (a_name_get(in, &m, e) < 0)
        return -1;
    struct name_ask q = {.of = a, .id = m.id, .process = m.process, .type = (uint16_t)m.type};
    a->gate->counts.names++;
    gate_counted(a->gate);
    if (a->nnames >= NET_QUESTIONS || !net_bucket_take(&a->name_bucket, now_ms()))
        answer_code(&q, NET_RCODE_FAILED);
    else if (net_name_clean(m.name, strlen(m.name), q.name))
        answer_code(&q, NET_RCODE_NO_NAME);
    else if (!judge(&q, &v))
        return 0;
    else if (q.type == NET_DNS_A || q.type == NET_DNS_AAAA)
        look_up(&q);
    else
        answer_code(&q, NET_RCODE_OK);
    return 0;
}

void names_free(struct attachment *a) {
    while (a->names) {
        struct name_ask *n = LIST_POP(&a->names, next);
        resolver_drop(&n->ask);
        free(n);
    }
    a->nnames = 0;
}
