/* See answers.h. Pairs of a name and an address, found by a hash of the address, in the order of
 * their use. An index into `slots` stands for a slot; NONE for no slot. */

#include "net/answers.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define NONE    UINT16_MAX
#define BUCKETS 256
#define WORD    64 /* bits */

struct answer {
    struct net_addr address;
    uint64_t until_ms;
    uint32_t kept_ms; /* what a use adds: the TTL and the grace */
    uint16_t chain;   /* the next one of the same bucket, or the next free one */
    uint16_t newer, older;
    char *name;      /* owned */
    uint64_t *rules; /* owned: a bit for each of the policy that has the name, whatever its ports;
                        NULL: nobody has looked yet */
};

struct net_answers {
    uint64_t key;
    size_t n;
    uint16_t free, newest, oldest;
    uint16_t buckets[BUCKETS];
    struct answer slots[NET_ANSWERS];
};

struct net_answers *net_answers_new(void) {
    struct net_answers *a = xcalloc(1, sizeof *a);
    if (getrandom(&a->key, sizeof a->key, GRND_NONBLOCK) < 0)
        a->key = (uint64_t)(uintptr_t)a;
    memset(a->buckets, 0xff, sizeof a->buckets);
    a->newest = a->oldest = NONE;
    for (unsigned i = 0; i < NET_ANSWERS; i++)
        a->slots[i].chain = i + 1 < NET_ANSWERS ? (uint16_t)(i + 1) : NONE;
    return a;
}

void net_answers_free(struct net_answers *a) {
    for (unsigned i = 0; a != NULL && i < NET_ANSWERS; i++) {
        free(a->slots[i].name);
        free(a->slots[i].rules);
    }
    free(a);
}

size_t net_answers_count(const struct net_answers *a) {
    return a->n;
}

static uint16_t *answers_bucket(struct net_answers *a, const struct net_addr *address) {
    uint64_t parts[2];
    memcpy(parts, address->b, sizeof parts);
    uint64_t h = (parts[0] ^ a->key) * 0x9e3779b97f4a7c15u;
    h = (h ^ (h >> 29) ^ parts[1]) * 0xd6e8feb86659fd93u;
    return &a->buckets[(h >> 56) % BUCKETS];
}

static void answers_unlink(struct net_answers *a, const struct answer *s) {
    *(s->newer != NONE ? &a->slots[s->newer].older : &a->newest) = s->older;
    *(s->older != NONE ? &a->slots[s->older].newer : &a->oldest) = s->newer;
}

static void answers_link(struct net_answers *a, uint16_t i) {
    struct answer *s = &a->slots[i];
    s->newer = NONE;
    s->older = a->newest;
    *(a->newest != NONE ? &a->slots[a->newest].newer : &a->oldest) = i;
    a->newest = i;
}

static void answers_use(struct net_answers *a, uint16_t i, uint64_t now_ms) {
    a->slots[i].until_ms = now_ms + a->slots[i].kept_ms;
    answers_unlink(a, &a->slots[i]);
    answers_link(a, i);
}

static void answers_forget(struct net_answers *a, uint16_t i) {
    struct answer *s = &a->slots[i];
    uint16_t *at = answers_bucket(a, &s->address);
    while (*at != i)
        at = &a->slots[*at].chain;
    *at = s->chain;
    answers_unlink(a, s);
    free(s->name);
    free(s->rules);
    *s = (struct answer){.chain = a->free};
    a->free = i;
    a->n--;
}

void net_answers_add(struct net_answers *a, const char *name, const struct net_addr *address,
                     uint32_t ttl_s, uint64_t now_ms) {
    uint32_t ttl_ms = (ttl_s > NET_TTL_MAX ? NET_TTL_MAX : ttl_s) * 1000u;
    uint16_t *bucket = answers_bucket(a, address), i = *bucket;
    while (i != NONE &&
           (!net_addr_same(&a->slots[i].address, address) || strcmp(a->slots[i].name, name) != 0))
        i = a->slots[i].chain;
    if (i == NONE) {
        if (a->free == NONE)
            answers_forget(a, a->oldest);
        i = a->free;
        struct answer *s = &a->slots[i];
        a->free = s->chain;
        *s = (struct answer){.address = *address, .chain = *bucket, .name = xstrdup(name)};
        *bucket = i;
        answers_link(a, i);
        a->n++;
    }
    a->slots[i].kept_ms = ttl_ms + NET_ANSWER_GRACE_MS;
    answers_use(a, i, now_ms);
}

/* A connect may meet a thousand names, and each of them hundreds of rules: compared once. */
static void answer_compare(struct answer *s, const struct net_policy *p) {
    s->rules = xcalloc(NET_ALLOW_MAX / WORD, sizeof *s->rules);
    for (uint32_t i = 0; i < p->nallow; i++)
        s->rules[i / WORD] |= (uint64_t)net_rule_has_name(&p->allow[i], s->name) << i % WORD;
}

/* As net_policy_find_name. */
static const struct net_rule *answer_rule(struct answer *s, const struct net_policy *p,
                                          uint16_t port) {
    if (!s->rules)
        answer_compare(s, p);
    for (uint32_t word = 0; word < NET_ALLOW_MAX / WORD; word++) {
        for (uint64_t left = s->rules[word]; left; left &= left - 1) {
            const struct net_rule *r = &p->allow[word * WORD + (uint32_t)__builtin_ctzll(left)];
            if (net_rule_has_port(r, port))
                return r;
        }
    }
    return NULL;
}

const struct net_rule *net_answers_find(struct net_answers *a, const struct net_policy *p,
                                        const struct net_addr *address, uint16_t port,
                                        uint64_t now_ms, const char **ret_name) {
    *ret_name = NULL;
    while (a->oldest != NONE && a->slots[a->oldest].until_ms <= now_ms)
        answers_forget(a, a->oldest);
    for (uint16_t i = *answers_bucket(a, address); i != NONE; i = a->slots[i].chain) {
        struct answer *s = &a->slots[i];
        if (!net_addr_same(&s->address, address) || s->until_ms <= now_ms)
            continue;
        const struct net_rule *r = answer_rule(s, p, port);
        *ret_name = s->name;
        if (r != NULL) {
            answers_use(a, i, now_ms);
            return r;
        }
    }
    return NULL;
}

void net_answers_prune(struct net_answers *a, const struct net_policy *p) {
    uint16_t next;
    for (uint16_t i = a->newest; i != NONE; i = next) {
        next = a->slots[i].older;
        free(a->slots[i].rules);
        a->slots[i].rules = NULL;
        if (p->mode != NET_OPEN && net_policy_find_name(p, a->slots[i].name, 0) == NULL)
            answers_forget(a, i);
    }
}
