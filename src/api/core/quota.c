/* See quota.h.
 *
 * A tenant may hold half of the connections and half of the memory for bodies, so that none can
 * keep the others out; one that has the server for itself may hold all.
 *
 * The limits of a key: requests per second (a bucket of one second's worth, at least one), requests
 * at once, and CPU seconds per minute (counted when a program ends, for live sandboxes meanwhile as
 * well, and forgotten at a steady rate). A key is known by its id, so that reloading the file of
 * keys forgets nothing. */

#include "api/core/quota.h"

#include "base/clock.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tally {
    struct tally *next;
    char id[24];
    uint64_t at_ns; /* when `tokens` and `cpu` were right */
    double tokens, cpu;
    unsigned active;
};

struct tenant_use {
    struct tenant_use *next;
    char tenant[65];
    unsigned connections; /* with a request under way */
    struct http_account bodies;
};

struct quota {
    struct tally *tallies; /* as many as keys were ever seen: the file bounds them */
    struct tenant_use *uses;
};

struct quota *quota_new(void) {
    return xcalloc(1, sizeof(struct quota));
}

static struct tally *quota_find(struct quota *g, const char *id) {
    struct tally *t = g->tallies;
    while (t && strcmp(t->id, id) != 0)
        t = t->next;
    if (t)
        return t;
    t = xcalloc(1, sizeof *t);
    snprintf(t->id, sizeof t->id, "%s", id);
    t->at_ns = now_ns();
    t->tokens = INFINITY; /* as many as it may save up: pass_time cuts */
    t->next = g->tallies;
    g->tallies = t;
    return t;
}

static void pass_time(struct tally *t, const struct key_limits *l) {
    uint64_t now = now_ns();
    double s = (double)(now - t->at_ns) / 1e9, most = fmax(1, l->requests_per_second);
    t->at_ns = now;
    t->tokens = fmin(most, t->tokens + s * l->requests_per_second);
    t->cpu = fmax(0, t->cpu - s * l->cpu_seconds_per_minute / 60.0);
}

static int quota_too_much(struct problem *ret, const char *code, double wait_s, const char *what) {
    problem_set(ret, code, "%s", what);
    ret->retry_after_s = wait_s < 1 ? 1u : (unsigned)ceil(wait_s);
    return -1;
}

static struct tenant_use *find_use(struct quota *g, const char *tenant) {
    struct tenant_use *u = g->uses;
    while (u && strcmp(u->tenant, tenant) != 0)
        u = u->next;
    if (u)
        return u;
    u = xcalloc(1, sizeof *u);
    snprintf(u->tenant, sizeof u->tenant, "%s", tenant);
    u->next = g->uses;
    g->uses = u;
    return u;
}

/* Whether keys of other tenants are in use. */
static bool has_others(const struct keys *k, const char *tenant) {
    unsigned i = 0;
    while (i < k->n && strcmp(k->items[i].tenant, tenant) == 0)
        i++;
    return i < k->n;
}

static unsigned half_of(unsigned n) {
    return n > 1 ? n / 2 : 1;
}

unsigned quota_share(const struct api *a, const char *tenant, unsigned all) {
    return has_others(&a->keys, tenant) ? half_of(all) : all;
}

int quota_settle(struct quota *g, struct call *c, struct problem *ret) {
    struct api *a = c->api;
    if (!a->has_keys)
        http_settle(c->req, NULL);
    if (!c->who.key[0])
        return 0;
    struct tenant_use *u = find_use(g, c->who.tenant);
    bool shared = has_others(&a->keys, c->who.tenant);
    unsigned most = half_of(http_most_connections(a->http));
    size_t bodies = (size_t)a->config->http.bodies_mb << 20;
    if (shared && u->connections >= most) {
        char text[120];
        snprintf(text, sizeof text, "this tenant has %u requests under way, its half of all", most);
        return quota_too_much(ret, "too_many_at_once", 1, text);
    }
    u->bodies.most = shared ? bodies / 2 : bodies;
    u->connections++;
    c->use = u;
    http_settle(c->req, &u->bodies);
    return 0;
}

void quota_unsettle(struct call *c) {
    if (c->use)
        c->use->connections--;
    c->use = NULL;
}

size_t quota_bodies(const struct call *c) {
    return c->use ? c->use->bodies.most : (size_t)c->api->config->http.bodies_mb << 20;
}

int quota_enter(struct quota *g, const struct caller *who, bool *ret_counted, struct problem *ret) {
    if (!who->key[0])
        return 0;
    const struct key_limits *l = &who->limits;
    struct tally *t = quota_find(g, who->key);
    char text[120];
    pass_time(t, l);
    if (l->concurrent && t->active >= l->concurrent) {
        snprintf(text, sizeof text, "this key may have %u requests at once", l->concurrent);
        return quota_too_much(ret, "too_many_at_once", 1, text);
    }
    if (l->requests_per_second > 0 && t->tokens < 1) {
        snprintf(text, sizeof text, "this key may make %g requests a second",
                 l->requests_per_second);
        return quota_too_much(ret, "too_many_requests", (1 - t->tokens) / l->requests_per_second,
                              text);
    }
    t->tokens -= l->requests_per_second > 0;
    t->active++;
    *ret_counted = true;
    return 0;
}

void quota_leave(struct quota *g, const struct caller *who, bool *counted) {
    if (*counted)
        quota_find(g, who->key)->active--;
    *counted = false;
}

int quota_may_run(const struct caller *who, struct problem *ret) {
    uint32_t most = who->limits.cpu_seconds_per_minute;
    if (audit_lets(&who->api->audit, ret) < 0)
        return -1;
    if (!most)
        return 0;
    struct tally *t = quota_find(who->api->quota, who->key);
    char text[120];
    pass_time(t, &who->limits);
    if (t->cpu < most)
        return 0;
    snprintf(text, sizeof text, "this key may use %u CPU seconds a minute", most);
    return quota_too_much(ret, "too_much_cpu", (t->cpu - most) * 60 / most, text);
}

void quota_used(struct quota *g, const char *key, double cpu_seconds) {
    if (*key)
        quota_find(g, key)->cpu += cpu_seconds;
}
