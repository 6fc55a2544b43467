/* See replays.h. The oldest go first: their replies when there is too much of those, and all that
 * is known of them when their time is over or there are too many. */

#include "api/replays.h"

#include "api/events.h"
#include "api/records.h"
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEPT_NS   3600000000000ull
#define REPLY_MAX (4u << 20)  /* bytes of one reply */
#define MAX_BYTES (32u << 20) /* of all replies */
#define MAX_N     10000u
#define CHAINS    4096
#define MAX_KEY   255

struct waiter {
    struct waiter *next;
    struct replay *replay;
    struct call *call;
};

struct replay {
    struct replay *newer, *chain;
    struct replays *all;
    const struct route *route;
    char tenant[65], key[MAX_KEY + 1];
    uint8_t hash[32];
    uint64_t done_ns; /* 0: under way */
    unsigned holds;
    int status;
    const char *type; /* borrowed: a constant */
    char execution[48];
    struct buf reply;
    size_t said; /* bytes, also of a reply that is not kept */
    bool dropped;
    bool refers; /* its events are the reply */
    struct waiter *waiters;
};

struct replays {
    struct replay *oldest, **end;
    struct replay *chains[CHAINS]; /* by key */
    size_t bytes, n;
};

struct replays *replays_new(void) {
    struct replays *all = xcalloc(1, sizeof *all);
    all->end = &all->oldest;
    return all;
}

/* ---- what is kept ---- */

static struct replay **chain_of(struct replays *all, const char *key) {
    uint32_t h = 2166136261u;
    for (; *key; key++)
        h = (h ^ (unsigned char)*key) * 16777619u;
    return &all->chains[h % CHAINS];
}

static void drop_reply(struct replay *r) {
    r->all->bytes -= r->reply.len;
    buf_done(&r->reply);
    r->reply = (struct buf)BUF_INIT;
    r->dropped = true;
}

static void forget(struct replay **at) {
    struct replay *r = *at, **link = chain_of(r->all, r->key);
    while (*link != r)
        link = &(*link)->chain;
    *link = r->chain;
    *at = r->newer;
    if (r->all->end == &r->newer)
        r->all->end = at;
    r->all->n--;
    drop_reply(r);
    free(r);
}

static void tidy(struct replays *all) {
    uint64_t now = now_ns();
    for (struct replay **at = &all->oldest; *at;) {
        struct replay *r = *at;
        if (!r->done_ns || r->holds)
            at = &r->newer;
        else if (now - r->done_ns > KEPT_NS || all->n > MAX_N)
            forget(at);
        else
            break; /* the rest is younger, as a rule */
    }
    for (struct replay *r = all->oldest; r && all->bytes > MAX_BYTES; r = r->newer) {
        if (r->done_ns && r->reply.len)
            drop_reply(r);
    }
}

static void forget_one(struct replay *r) {
    struct replay **at = &r->all->oldest;
    while (*at != r)
        at = &(*at)->newer;
    forget(at);
}

struct replay *replay_find(const struct call *c, const char *key) {
    struct replays *all = c->api->replays;
    tidy(all);
    struct replay *r = *chain_of(all, key);
    while (r && (strcmp(r->key, key) != 0 || strcmp(r->tenant, c->tenant) != 0))
        r = r->chain;
    return r;
}

struct replay *replay_add(const struct call *c, const char *key) {
    struct replays *all = c->api->replays;
    struct replay *r = xcalloc(1, sizeof *r), **chain = chain_of(all, key);
    *r = (struct replay){.all = all, .route = c->route, .reply = BUF_INIT, .chain = *chain};
    memcpy(r->tenant, c->tenant, sizeof r->tenant);
    memcpy(r->key, key, strlen(key) + 1);
    *chain = r;
    *all->end = r;
    all->end = &r->newer;
    all->n++;
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

static void lost(const struct replay *r, struct call *c) {
    struct problem p = {.status = 409,
                        .code = "reply_not_kept",
                        .remediation = "look the execution up, if it has an id, with GET "
                                       "/v1/executions/ID; a new key runs it again"};
    if (r->refers)
        snprintf(p.text, sizeof p.text, "this request was carried out as %s, as a stream",
                 r->execution);
    else
        snprintf(
            p.text, sizeof p.text,
            "this request was carried out%s%s, but its reply of %zu bytes was too large to keep",
            *r->execution ? " as " : "", r->execution, r->said);
    call_problem(c, &p);
}

static void send_again(const struct replay *r, struct call *c) {
    enum events_form form = events_wanted(c);
    struct record *rec = r->refers ? records_find(c->api->records, c->tenant, r->execution) : NULL;
    if (r->dropped || (r->refers && (!rec || form == EVENTS_NONE))) {
        lost(r, c);
        return;
    }
    http_add_header(c->req, "Idempotent-Replayed", "true");
    if (*r->execution)
        http_add_header(c->req, "X-Execution-Id", r->execution);
    if (rec)
        events_stream(c, rec, form, 0, &(struct events_source){0});
    else
        http_reply(c->req, r->status, r->type, r->reply.data, r->reply.len);
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

static void wait_for(struct replay *r, struct call *c) {
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
    call_problem(c, &(struct problem){.status = 422,
                                      .code = "idempotency_key_reused",
                                      .message = "this Idempotency-Key came before with another "
                                                 "request",
                                      .remediation = "use a new key for a new request"});
}

void replay_answer(struct replay *r, struct call *c, const uint8_t hash[32]) {
    if (!replay_is_of(r, c) || memcmp(r->hash, hash, sizeof r->hash) != 0)
        replay_conflict(c);
    else if (r->done_ns)
        send_again(r, c);
    else
        wait_for(r, c);
}

/* ---- the first one ---- */

void replay_begin(struct replay *r, int status, const char *type, const char *execution) {
    r->status = status;
    r->type = type;
    snprintf(r->execution, sizeof r->execution, "%s", execution ? execution : "");
}

void replay_write(struct replay *r, const void *data, size_t len) {
    r->said += len;
    if (r->dropped)
        return;
    if (r->said > REPLY_MAX) {
        drop_reply(r);
        return;
    }
    buf_add(&r->reply, data, len);
    r->all->bytes += len;
}

void replay_refer(struct replay *r) {
    r->refers = true;
}

void replay_end(struct replay *r) {
    r->done_ns = now_ns();
    for (struct call *c; (c = next_waiter(r));)
        send_again(r, c);
    tidy(r->all);
}

void replay_fail(struct replay *r, const struct problem *p) {
    for (struct call *c; (c = next_waiter(r));)
        call_problem(c, p);
    forget_one(r);
}

/* ---- keys ---- */

void replay_hash(const struct call *c, const void *data, size_t len, uint8_t ret[32]) {
    struct sha256_ctx ctx;
    keys_hash_init(&ctx);
    keys_hash_add(&ctx, http_path(c->req), strlen(http_path(c->req)) + 1);
    keys_hash_add(&ctx, data, len);
    keys_hash_end(&ctx, ret);
}

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
    call_problem(c, &(struct problem){.status = 422,
                                      .code = "bad_idempotency_key",
                                      .message = "Idempotency-Key must be 1 to 255 printable "
                                                 "characters without spaces",
                                      .remediation = "send a UUID, for example"});
    return false;
}
