/* See seccomp_late.h. Each kernel enters this part, since there is a listener for each sandbox, and
 * the kernel checks and translates it instruction by instruction, some 0.4 us for each: so it is to
 * be short. libseccomp's program for the same rows is nearly twice as long.
 *
 * Theory of operation. The program is written from its end to its beginning, so that whatever is
 * jumped to is there already; a label is how many instructions there are from its own to the end.
 * First come the answers, then for each call with conditions a block, then the search for the
 * call's number: a binary tree, whose leaves compare with a few numbers in turn. A number that the
 * early part refuses altogether may get any answer here, since a refusal comes before what this
 * part says: so ranges go on across it.
 *
 * SECURITY: comparisons look at the low half of a register, as in seccomp.c. Only instructions that
 * the kernel's own interpreter of filters knows are used to find a number: it remembers calls that
 * are always let, and those never come here again (seccomp_cache_prepare, 5.11). */

#include "sandbox/seccomp_late.h"

#include "sandbox/seccomp_rules.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define WHOLE          UINT32_MAX
#define FAR            250 /* a jump that depends on something goes no farther than 255 */
#define LEAF           3   /* ranges of numbers */
#define ANSWER(action) ((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action))
#define LOAD(at)       ((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at))

/* Calls that are treated alike. */
struct range {
    int first, last;
    unsigned label;
};

struct writer {
    struct sock_filter code[SECCOMP_LATE_MAX]; /* its last n are written */
    unsigned n;
    bool bad; /* it is too long, or something stands where a test should begin */
    unsigned allow, notify;
    unsigned labels[NR_LAST + 1]; /* by number; 0: any */
    struct range ranges[NR_LAST + 1];
    unsigned nranges;
};

static unsigned emit(struct writer *w, struct sock_filter one) {
    if (w->n == SECCOMP_LATE_MAX)
        w->bad = true;
    else
        w->code[SECCOMP_LATE_MAX - ++w->n] = one;
    return w->n;
}

static unsigned put_near(struct writer *w, unsigned label) {
    return w->n - label < FAR
               ? label
               : emit(w, (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, w->n - label));
}

static unsigned put_if(struct writer *w, uint16_t op, uint32_t k, unsigned then, unsigned els) {
    then = put_near(w, then);
    els = put_near(w, els);
    return emit(w, (struct sock_filter)BPF_JUMP(BPF_JMP | op | BPF_K, k, (uint8_t)(w->n - then),
                                                (uint8_t)(w->n - els)));
}

/* ---- conditions ---- */

/* A test of an argument. Whoever has the argument loaded already, with the same bits left of it,
 * goes to `compare`; for the others it is loaded just before that, once one of them comes. */
struct test {
    unsigned label, compare; /* 0: not written yet */
    int arg;                 /* -1: it is no test */
    uint32_t mask;
};

static unsigned begin_test(struct writer *w, struct test *t) {
    if (t->label)
        return t->label;
    w->bad = w->bad || t->compare != w->n;
    if (t->mask != WHOLE)
        emit(w, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, t->mask));
    size_t at = offsetof(struct seccomp_data, args) + (size_t)t->arg * sizeof(uint64_t);
    return t->label = emit(w, LOAD((uint32_t)at));
}

/* One of these bits, where `mask` is WHOLE and `op` is JSET; or this value. */
static struct test put_test(struct writer *w, struct test t, uint16_t op, uint32_t value,
                            unsigned then, struct test *els) {
    bool same = els->arg == t.arg && els->mask == t.mask;
    t.compare = put_if(w, op, value, then, same ? els->compare : begin_test(w, els));
    return t;
}

static bool is_bit(const struct condition *c) {
    return c->mask == c->value && (c->mask & (c->mask - 1)) == 0;
}

static struct test put_condition(struct writer *w, const struct condition *c, unsigned then,
                                 struct test *els) {
    const struct test t = {.arg = (int)c->arg, .mask = is_bit(c) ? WHOLE : c->mask};
    return put_test(w, t, is_bit(c) ? BPF_JSET : BPF_JEQ, c->value, then, els);
}

static bool is_late(const struct rule *r) {
    return !r->prologue && seccomp_part_of(r) == SECCOMP_LATE;
}

static uint32_t action_of(const struct rule *r) {
    return r->op || r->served ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ERRNO | (uint32_t)r->errnum;
}

static bool same_condition(const struct condition *a, const struct condition *b) {
    return a->arg == b->arg && a->mask == b->mask && a->value == b->value;
}

/* Rows [from, to) begin with the same condition and have a second one. */
static struct test put_pairs(struct writer *w, const struct rule *const *from,
                             const struct rule *const *to, unsigned hit, struct test next) {
    begin_test(w, &next); /* two may need it */
    struct test second = next;
    for (const struct rule *const *r = to; r-- > from;)
        second = put_condition(w, &(*r)->when[1], hit, &second);
    unsigned then = begin_test(w, &second);
    return put_condition(w, &(*from)->when[0], then, &next);
}

/* Rows [from, to) are let for none of some bits of an argument. */
static struct test put_bits(struct writer *w, const struct rule *const *from,
                            const struct rule *const *to, unsigned hit, struct test next) {
    const struct test t = {.arg = (int)(*from)->when[0].arg, .mask = WHOLE};
    uint32_t bits = 0;
    for (const struct rule *const *r = from; r < to; r++)
        bits |= (*r)->when[0].value;
    return put_test(w, t, BPF_JSET, bits, hit, &next);
}

/* Whether two rows can share an instruction. */
static bool go_together(const struct rule *a, const struct rule *b) {
    const struct condition *p = a->when, *q = b->when;
    if (p[1].mask || q[1].mask)
        return p[1].mask && q[1].mask && same_condition(p, q);
    return is_bit(p) && is_bit(q) && p->arg == q->arg;
}

/* The rows of a call, whose answer is at `hit`: none is without a condition. */
static unsigned put_rows(struct writer *w, const struct rule *const *rows, size_t n, unsigned hit) {
    struct test next = {.label = w->allow, .arg = -1};
    for (size_t to = n, from; to > 0; to = from) {
        for (from = to - 1; from > 0 && go_together(rows[from - 1], rows[from]); from--)
            ;
        const struct rule *last = rows[to - 1];
        if (last->when[1].mask)
            next = put_pairs(w, rows + from, rows + to, hit, next);
        else if (is_bit(last->when))
            next = put_bits(w, rows + from, rows + to, hit, next);
        else
            next = put_condition(w, last->when, hit, &next);
    }
    return begin_test(w, &next);
}

/* All rows of a call have the same answer. */
static int put_call(struct writer *w, int nr, struct err *e) {
    const struct rule *rows[32];
    size_t n = 0;
    bool always = false;
    for (size_t i = 0; i < seccomp_nrules; i++) {
        const struct rule *r = &seccomp_rules[i];
        if (r->nr != nr || !is_late(r))
            continue;
        if (n == sizeof rows / sizeof *rows || (n && action_of(r) != action_of(rows[0])))
            return err_set(e, EINVAL, "%s: the late filter takes no such row", r->rule);
        always = always || r->when[0].mask == 0;
        rows[n++] = r;
    }
    if (n == 0)
        return 0;
    uint32_t action = action_of(rows[0]);
    unsigned hit = action == SECCOMP_RET_USER_NOTIF ? w->notify : emit(w, ANSWER(action));
    w->labels[nr] = always ? hit : put_rows(w, rows, n, hit);
    return 0;
}

/* ---- the search ---- */

/* What the early part refuses whatever the arguments are. */
static bool is_refused_early(int nr) {
    for (size_t i = 0; i < seccomp_nrules; i++) {
        const struct rule *r = &seccomp_rules[i];
        if (r->nr == nr && !r->prologue && !is_late(r) && r->when[0].mask == 0)
            return true;
    }
    return false;
}

static void find_ranges(struct writer *w) {
    struct range *open = NULL;
    for (int nr = 0; nr <= NR_LAST; nr++) {
        unsigned label = w->labels[nr];
        if (label == 0)
            continue;
        if (open && label == open->label) {
            open->last = nr;
            continue;
        }
        open = label == w->allow ? NULL : &w->ranges[w->nranges++];
        if (open)
            *open = (struct range){nr, nr, label};
    }
}

static unsigned put_range(struct writer *w, const struct range *r, unsigned els) {
    if (r->first == r->last)
        return put_if(w, BPF_JEQ, (uint32_t)r->first, r->label, els);
    unsigned inside = put_if(w, BPF_JGT, (uint32_t)r->last, els, r->label);
    return put_if(w, BPF_JGE, (uint32_t)r->first, inside, els);
}

static unsigned put_search(struct writer *w, const struct range *ranges, unsigned n) {
    unsigned els = w->allow;
    if (n <= LEAF) {
        while (n-- > 0)
            els = put_range(w, &ranges[n], els);
        return els;
    }
    unsigned half = n / 2;
    unsigned above = put_search(w, ranges + half, n - half);
    unsigned below = put_search(w, ranges, half);
    return put_if(w, BPF_JGE, (uint32_t)ranges[half].first, above, below);
}

int seccomp_late(const struct seccomp_judge *judges, size_t njudges, struct sock_filter *out,
                 size_t *ret_len, struct err *e) {
    struct writer w = {.n = 0};
    w.allow = emit(&w, ANSWER(SECCOMP_RET_ALLOW));
    w.notify = emit(&w, ANSWER(SECCOMP_RET_USER_NOTIF));
    for (int nr = 0; nr <= NR_LAST; nr++) {
        w.labels[nr] = is_refused_early(nr) ? 0 : w.allow;
        if (put_call(&w, nr, e) < 0)
            return -1;
    }
    for (size_t i = 0; i < njudges; i++) {
        for (size_t k = judges[i].len; k-- > 0;)
            w.labels[judges[i].nr] = emit(&w, judges[i].code[k]);
    }
    find_ranges(&w);
    put_search(&w, w.ranges, w.nranges);
    emit(&w, LOAD(offsetof(struct seccomp_data, nr)));
    if (w.bad)
        return err_set(e, E2BIG, "the late filter cannot be written");
    memcpy(out, w.code + (SECCOMP_LATE_MAX - w.n), w.n * sizeof *out);
    *ret_len = w.n;
    return 0;
}
