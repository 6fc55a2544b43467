/* See replays.h. That a key was used is known for its whole time, whatever others do: a tenant that
 * has as many as it may have gets no more. When the replies are too much, the oldest one of the
 * tenant with the most goes first.
 *
 * SECURITY: clients choose the keys, so the chains are found by a hash with a secret in it. */

#include "api/jobs/replays.h"

#include "api/core/shares.h"
#include "api/jobs/events.h"
#include "api/jobs/records.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEPT_NS    3600000000000ull
#define REPLY_MAX  (4u << 20)  /* bytes of one reply */
#define MAX_BYTES  (32u << 20) /* of all replies */
#define CHAINS     4096
#define MAX_KEY    255
#define FREED_MOST 64 /* in one call, of those whose time is over */

struct waiter {
    struct waiter *next;
    struct replay *replay;
    struct call *call;
};

struct replay {
    struct share_item known; /* among all of its tenant */
    struct share_item kept;  /* among those with a reply; share is NULL when it is not there */
    struct replay *chain;
    unsigned chain_at; /* the number of its chain */
    struct replays *all;
    const struct route *route;
    char *key; /* owned */
    uint8_t hash[32];
    uint64_t done_ns; /* 0: under way */
    unsigned holds;
    int status;
    const char *type; /* borrowed: a constant */
    char execution[48];
    struct rope reply; /* and behind it `tail` */
    struct buf tail;
    size_t said;  /* bytes, also of a reply that is not kept */
    bool dropped; /* the reply: too large, or for lack of room */
    bool refers;  /* its events are the reply */
    struct waiter *waiters;
};

struct replays {
    struct shares known, kept;
    struct replay *chains[CHAINS]; /* by tenant and key */
    char secret[ID_MAX];
    size_t most; /* keys of one tenant */
};

struct replays *replays_new(size_t most) {
    struct replays *all = xcalloc(1, sizeof *all);
    all->most = most;
    id_make("", all->secret, sizeof all->secret);
    return all;
}

/* ---- what is kept ---- */

static unsigned chain_number(const struct replays *all, const char *tenant, const char *key) {
    struct sha256_ctx ctx;
    uint8_t hash[32];
    keys_hash_init(&ctx);
    keys_hash_add(&ctx, all->secret, strlen(all->secret) + 1);
    keys_hash_add(&ctx, tenant, strlen(tenant) + 1);
    keys_hash_add(&ctx, key, strlen(key));
    keys_hash_end(&ctx, hash);
    return (hash[0] | (unsigned)hash[1] << 8) % CHAINS;
}

static void drop_reply(struct replay *r) {
    if (r->kept.share)
        shares_remove(&r->all->kept, &r->kept);
    r->kept.share = NULL;
    rope_done(&r->reply);
    buf_done(&r->tail);
    r->dropped = true;
}

static void replay_forget(struct replay *r) {
    struct replay **link = &r->all->chains[r->chain_at];
    while (*link != r)
        link = &(*link)->chain;
    *link = r->chain;
    drop_reply(r);
    shares_remove(&r->all->known, &r->known);
    free(r->key);
    free(r);
}

static bool is_waited_for(const struct replay *r) {
    return !r->done_ns || r->holds;
}

static bool is_old(const struct replay *r, uint64_t now) {
    return !is_waited_for(r) && now - r->done_ns > KEPT_NS;
}

/* Some of one tenant's whose time is over: there may be very many. */
static void replay_forget_old(struct share *of, uint64_t now) {
    struct share_item *newer;
    unsigned n = 0;
    for (struct share_item *it = of->oldest; it && n < FREED_MOST; it = newer, n++) {
        struct replay *r = (struct replay *)it;
        newer = it->newer;
        if (is_old(r, now))
            replay_forget(r); /* with the last one the share is gone, too */
        else if (!is_waited_for(r))
            return; /* the rest is younger, as a rule */
    }
}

static struct replay *of_kept(const struct share_item *it) {
    return (struct replay *)((char *)(uintptr_t)it - offsetof(struct replay, kept));
}

static bool may_go(const struct share_item *it) {
    return of_kept(it)->done_ns != 0;
}

static void replay_tidy(struct replays *all) {
    uint64_t now = now_ns();
    struct share_item *it;
    for (struct share *of = all->known.first, *next; of; of = next) {
        next = of->next;
        replay_forget_old(of, now);
    }
    while (all->kept.bytes > MAX_BYTES && (it = shares_victim(&all->kept, may_go)))
        drop_reply(of_kept(it));
}

struct replay *replay_find(const struct call *c, const char *key) {
    struct replays *all = c->api->replays;
    replay_tidy(all);
    struct replay *r = all->chains[chain_number(all, c->who.tenant, key)];
    while (r && (strcmp(r->key, key) != 0 || strcmp(r->known.share->tenant, c->who.tenant) != 0))
        r = r->chain;
    if (!r || !is_old(r, now_ns()))
        return r;
    replay_forget(r);
    return NULL;
}

static void too_many(struct call *c, size_t most) {
    call_refuse(c, "idempotency_keys_full",
                "%zu requests with an Idempotency-Key came within an hour, which is as many as are "
                "kept for one tenant; this one was not carried out",
                most);
}

struct replay *replay_add(struct call *c, const char *key) {
    struct replays *all = c->api->replays;
    if (shares_count(&all->known, c->who.tenant) >= all->most) {
        too_many(c, all->most);
        return NULL;
    }
    struct replay *r = xcalloc(1, sizeof *r);
    unsigned at = chain_number(all, c->who.tenant, key);
    struct replay **chain = &all->chains[at];
    *r = (struct replay){
        .all = all, .route = c->route, .tail = BUF_INIT, .chain = *chain, .chain_at = at};
    r->key = xstrdup(key);
    *chain = r;
    shares_add(&all->known, &r->known, c->who.tenant, 0);
    return r;
}

void replay_set_hash(struct replay *r, const uint8_t hash[32]) {
    memcpy(r->hash, hash, sizeof r->hash);
}

bool replay_is_done(const struct replay *r) {
    return r->done_ns != 0;
}
bool replay_is_of(const struct replay *r, const struct call *c) {
    return r->route == c->route;
}
void replay_hold(struct replay *r, bool hold) {
    r->holds += hold ? 1 : -1u;
}

/* ---- later requests ---- */

static void replay_lost(const struct replay *r, struct call *c, bool asks_for_stream) {
    const char *as = *r->execution ? " as " : "", *why = "was too large to keep";
    if (r->refers) {
        call_refuse(c, "reply_not_kept", "this request was carried out as %s, as a stream%s",
                    r->execution, asks_for_stream ? ", whose events are not kept any more" : "");
        return;
    }
    if (r->said <= REPLY_MAX)
        why = "had to make room for later ones";
    call_refuse(c, "reply_not_kept",
                "this request was carried out%s%s, but its reply of %zu bytes %s", as, r->execution,
                r->said, why);
}

static void reply_again(const struct replay *r, struct call *c) {
    AUTO_ROPE again = ROPE_INIT;
    rope_add_rope(&again, &r->reply);
    http_reply_rope(c->req, r->status, r->type, &again);
}

static void send_again(const struct replay *r, struct call *c) {
    enum events_form form = events_wanted(c);
    struct record *rec =
        r->refers ? records_find(c->api->records, c->who.tenant, r->execution) : NULL;
    if (r->dropped || (r->refers && (!rec || form == EVENTS_NONE))) {
        replay_lost(r, c, form != EVENTS_NONE);
        return;
    }
    http_add_header(c->req, "Idempotent-Replayed", "true");
    if (*r->execution)
        http_add_header(c->req, "X-Execution-Id", r->execution);
    if (rec)
        events_stream(c, rec, form, 0, &(struct events_source){0});
    else
        reply_again(r, c);
}

static void free_waiter(void *state) {
    struct waiter *w = state;
    for (struct waiter **at = w->replay ? &w->replay->waiters : NULL; at && *at;
         at = &(*at)->next) {
        if (*at == w) {
            *at = w->next;
            break;
        }
    }
    free(w);
}

static void replay_wait_for(struct replay *r, struct call *c) {
    struct waiter *w = xcalloc(1, sizeof *w);
    *w = (struct waiter){.next = r->waiters, .replay = r, .call = c};
    r->waiters = w;
    c->state = w;
    c->state_done = free_waiter;
}

static struct call *next_waiter(struct replay *r) {
    struct waiter *w = r->waiters;
    if (!w)
        return NULL;
    r->waiters = w->next;
    w->replay = NULL;
    return w->call;
}

void replay_conflict(struct call *c) {
    call_refuse(c, "idempotency_key_reused",
                "this Idempotency-Key came before with another "
                "request");
}

void replay_answer(struct replay *r, struct call *c, const uint8_t hash[32]) {
    if (!replay_is_of(r, c) || memcmp(r->hash, hash, sizeof r->hash) != 0)
        replay_conflict(c);
    else if (r->done_ns)
        send_again(r, c);
    else
        replay_wait_for(r, c);
}

/* ---- the first one ---- */

void replay_begin(struct replay *r, int status, const char *type, const char *execution) {
    r->status = status;
    r->type = type;
    snprintf(r->execution, sizeof r->execution, "%s", execution ? execution : "");
}

/* So many more bytes. False: it is too much to keep, or was before. */
static bool keeps(struct replay *r, size_t len) {
    r->said += len;
    if (r->dropped)
        return false;
    if (r->said > REPLY_MAX)
        drop_reply(r);
    else if (r->kept.share)
        shares_resize(&r->all->kept, &r->kept, r->said);
    else
        shares_add(&r->all->kept, &r->kept, r->known.share->tenant, r->said);
    return !r->dropped;
}

void replay_write(struct replay *r, const void *data, size_t len) {
    if (keeps(r, len))
        buf_add(&r->tail, data, len);
}

void replay_write_rope(struct replay *r, const struct rope *rope) {
    if (!keeps(r, rope->bytes))
        return;
    rope_add(&r->reply, &r->tail);
    rope_add_rope(&r->reply, rope);
}

void replay_refer(struct replay *r) {
    r->refers = true;
}

void replay_end(struct replay *r) {
    r->done_ns = now_ns();
    rope_add(&r->reply, &r->tail);
    for (struct call *c; (c = next_waiter(r));)
        send_again(r, c);
    replay_tidy(r->all);
}

void replay_fail(struct replay *r, const struct problem *p) {
    for (struct call *c; (c = next_waiter(r));)
        call_problem(c, p);
    replay_forget(r);
}

/* ---- keys ---- */

static bool is_good(const char *key) {
    size_t n = 0;
    while (key[n] > 32 && key[n] < 127)
        n++;
    return n > 0 && n <= MAX_KEY && key[n] == '\0';
}

bool replay_key(struct call *c, const char **ret_key) {
    *ret_key = http_header(c->req, "Idempotency-Key");
    if (!*ret_key || is_good(*ret_key))
        return true;
    call_refuse(c, "bad_idempotency_key",
                "Idempotency-Key must be 1 to 255 printable "
                "characters without spaces");
    return false;
}
