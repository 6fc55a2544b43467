/* See replays.h. A replay owns the execution; the requests that wait for it come and go. */

#include "api/replays.h"

#include "api/exec.h"
#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

#define KEPT_NS   3600000000000ull
#define MAX_BYTES (8u << 20)
#define MAX_KEY   255

struct waiter {
    struct waiter *next;
    struct replay *replay;
    struct call *call;
};

struct replay {
    struct replay *newer;
    struct replays *all;
    char tenant[65], key[MAX_KEY + 1];
    uint8_t hash[32];
    uint64_t done_ns; /* 0: under way */
    struct buf reply;
    struct waiter *waiters;
};

struct replays {
    struct replay *oldest;
    size_t bytes;
};

struct replays *replays_new(void) {
    return xcalloc(1, sizeof(struct replays));
}

static void forget(struct replays *all, struct replay **at) {
    struct replay *r = *at;
    *at = r->newer;
    all->bytes -= sizeof *r + r->reply.len;
    buf_done(&r->reply);
    free(r);
}

static void tidy(struct replays *all) {
    uint64_t now = now_ns();
    for (struct replay **at = &all->oldest; *at;) {
        struct replay *r = *at;
        if (r->done_ns && (now - r->done_ns > KEPT_NS || all->bytes > MAX_BYTES))
            forget(all, at);
        else
            at = &r->newer;
    }
}

static struct replay *find(struct replays *all, const char *tenant, const char *key) {
    struct replay *r = all->oldest;
    while (r && (strcmp(r->key, key) != 0 || strcmp(r->tenant, tenant) != 0))
        r = r->newer;
    return r;
}

static void remove_replay(struct replay *r) {
    for (struct replay **at = &r->all->oldest; *at; at = &(*at)->newer) {
        if (*at == r) {
            forget(r->all, at);
            return;
        }
    }
}

static struct replay *add(struct replays *all, const struct call *c, const char *key,
                          const uint8_t hash[32]) {
    struct replay *r = xcalloc(1, sizeof *r), **end = &all->oldest;
    r->all = all;
    r->reply = (struct buf)BUF_INIT;
    memcpy(r->tenant, c->tenant, sizeof r->tenant);
    memcpy(r->key, key, strlen(key) + 1);
    memcpy(r->hash, hash, sizeof r->hash);
    while (*end)
        end = &(*end)->newer;
    *end = r;
    all->bytes += sizeof *r;
    return r;
}

/* ---- those who wait ---- */

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

static void on_done(void *arg, struct exec *x, const struct err *why) {
    struct replay *r = arg;
    if (why) {
        for (struct call *c; (c = next_waiter(r));)
            call_fail(c, why);
        remove_replay(r);
        return;
    }
    exec_result(x, false, &r->reply);
    r->done_ns = now_ns();
    r->all->bytes += r->reply.len;
    for (struct call *c; (c = next_waiter(r));)
        call_json(c, 200, &r->reply);
    tidy(r->all);
}

/* ---- a request ---- */

static bool key_is_good(const char *key) {
    size_t n = 0;
    while (key[n] > 32 && key[n] < 127)
        n++;
    return n > 0 && n <= MAX_KEY && key[n] == '\0';
}

static void start(struct call *c, const char *key, const uint8_t hash[32]) {
    struct problem p = {0};
    struct exec *x;
    struct replay *r = add(c->api->replays, c, key, hash);
    const struct exec_callbacks cb = {.arg = r, .on_done = on_done};
    if (exec_start(c, c->body, &cb, &x, &p) < 0) {
        remove_replay(r);
        call_problem(c, &p);
        return;
    }
    wait_for(r, c);
}

void replay_execute(struct call *c, const char *key) {
    uint8_t hash[32];
    const struct buf *body = http_body(c->req);
    if (!key_is_good(key)) {
        call_problem(c, &(struct problem){.status = 422,
                                          .code = "bad_idempotency_key",
                                          .message = "Idempotency-Key must be 1 to 255 printable "
                                                     "characters without spaces",
                                          .remediation = "send a UUID, for example"});
        return;
    }
    keys_sha256(body->data, body->len, hash);
    tidy(c->api->replays);
    struct replay *r = find(c->api->replays, c->tenant, key);
    if (!r) {
        start(c, key, hash);
    } else if (memcmp(r->hash, hash, sizeof hash) != 0) {
        call_problem(c, &(struct problem){.status = 422,
                                          .code = "idempotency_key_reused",
                                          .message = "this Idempotency-Key came before with "
                                                     "another body",
                                          .remediation = "use a new key for a new request"});
    } else if (r->done_ns) {
        http_add_header(c->req, "Idempotent-Replayed", "true");
        call_json(c, 200, &r->reply);
    } else {
        wait_for(r, c);
    }
}
