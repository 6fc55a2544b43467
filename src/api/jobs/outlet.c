/* See outlet.h. */

#include "api/jobs/outlet.h"

#include "api/core/body.h"
#include "api/core/quota.h"

#include <string.h>

/* Pieces of work without a client, which hold their bodies in memory: of one tenant, and of all. */
#define ALONE_OF_ONE 64u
#define ALONE_MOST   1024u

bool outlet_open(struct call *c, struct outlet *ret) {
    const char *key;
    uint8_t hash[32];
    *ret = (struct outlet){.call = c, .who = c->who};
    if (!replay_key(c, &key))
        return false;
    if (!key)
        return true;
    const struct buf *body = http_body(c->req);
    struct replay *first = replay_find(c, key);
    if (!body_hash(c->large, hash))
        body_request_hash(http_path(c->req), body->data, body->len, hash);
    if (first) {
        replay_answer(first, c, hash);
        return false;
    }
    ret->replay = replay_add(c, key);
    if (ret->replay)
        replay_set_hash(ret->replay, hash);
    return ret->replay != NULL;
}

static void outlet_fail(struct outlet *o, const struct problem *p) {
    struct replay *r = o->replay;
    o->replay = NULL;
    if (r)
        replay_fail(r, p);
}

void outlet_done(struct outlet *o) {
    struct problem p;
    problem_set(&p, "client_gone", "the first request with this Idempotency-Key was cut off");
    outlet_fail(o, &p);
    if (!o->call)
        shares_remove(&o->who.api->alone, &o->alone);
    quota_leave(o->who.api->quota, &o->who, &o->counted);
}

static void outlet_keep(struct outlet *o) {
    struct replay *r = o->replay;
    o->replay = NULL;
    if (r)
        replay_end(r);
}

void outlet_json(struct outlet *o, int status, const struct buf *json, const char *execution) {
    if (o->call)
        call_json(o->call, status, json);
    if (o->replay) {
        replay_begin(o->replay, status, "application/json", execution);
        replay_write(o->replay, json->data, json->len);
    }
    outlet_keep(o);
}

void outlet_rope(struct outlet *o, int status, struct rope *json, const char *execution) {
    if (o->replay) {
        replay_begin(o->replay, status, "application/json", execution);
        replay_write_rope(o->replay, json);
    }
    if (o->call)
        http_reply_rope(o->call->req, status, "application/json", json);
    rope_done(json);
    outlet_keep(o);
}

void outlet_problem(struct outlet *o, const struct problem *p) {
    if (o->call)
        call_problem(o->call, p);
    outlet_fail(o, p);
}

void outlet_stream(struct outlet *o, const char *type, const char *execution, const char *sign) {
    http_set_sign(o->call->req, sign);
    if (execution)
        http_add_header(o->call->req, "X-Execution-Id", execution);
    http_stream(o->call->req, 200, type);
    if (o->replay)
        replay_begin(o->replay, 200, type, execution);
}

void outlet_write(struct outlet *o, const void *data, size_t len) {
    if (o->call)
        http_write(o->call->req, data, len);
    if (o->replay)
        replay_write(o->replay, data, len);
}

void outlet_write_rope(struct outlet *o, struct rope *rope) {
    if (o->replay)
        replay_write_rope(o->replay, rope);
    if (o->call)
        http_write_rope(o->call->req, rope);
    rope_done(rope);
}

void outlet_sign(struct outlet *o, const char *sign) {
    if (o->call)
        http_write(o->call->req, sign, strlen(sign));
}

void outlet_end(struct outlet *o) {
    if (o->call)
        http_end(o->call->req);
    outlet_keep(o);
}

void outlet_refer(struct outlet *o, const char *execution) {
    if (o->replay) {
        replay_begin(o->replay, 200, NULL, execution);
        replay_refer(o->replay);
    }
    outlet_keep(o);
}

bool outlet_is_full(const struct outlet *o) {
    return o->call && http_backlog(o->call->req) > HTTP_HIGH_WATER;
}

bool outlet_leave(struct outlet *o) {
    struct call *c = o->call;
    struct shares *alone = &o->who.api->alone;
    if (!o->replay || alone->n >= ALONE_MOST || shares_count(alone, o->who.tenant) >= ALONE_OF_ONE)
        return false;
    shares_add(alone, &o->alone, o->who.tenant, 0);
    o->call = NULL;
    o->counted = c->counted; /* the key's place among its concurrent ones goes with the work */
    c->counted = false;
    c->state = NULL;
    c->state_done = NULL;
    return true;
}
