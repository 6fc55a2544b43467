#pragma once
/* Replies by Idempotency-Key: the same key and request gets the same reply without running twice,
 * also while the first is still under way and when its client has gone. A key is kept for an hour;
 * what failed is not kept. A tenant may have so many of them, and gets no more before some are an
 * hour old. For a reply that was too large, or had to make room for others of its tenant, we
 * remember only that it was sent. */

#include "api/core/call.h"

struct replay;
/* `most` is the number of keys that one tenant may have. */
struct replays *replays_new(size_t most);

/* The request's Idempotency-Key. False when it is no good, and the call is answered. *ret_key is
 * NULL when there is none. */
bool replay_key(struct call *c, const char **ret_key);
/* NULL, or the one that the key was first used for: by this tenant. */
struct replay *replay_find(const struct call *c, const char *key);
/* Under way from now on. NULL when the tenant has too many keys, and the call is answered. */
struct replay *replay_add(struct call *c, const char *key);
void replay_set_hash(struct replay *r, const uint8_t hash[32]);

/* The reply of the first; `type` is borrowed, `execution` may be NULL. */
void replay_begin(struct replay *r, int status, const char *type, const char *execution);
void replay_write(struct replay *r, const void *data, size_t len);
void replay_write_rope(struct replay *r, const struct rope *rope); /* shares its pieces */
/* It is the events of that execution or command, and these are kept with it. */
void replay_refer(struct replay *r);
/* It is whole: those who wait get it, and it is kept. */
void replay_end(struct replay *r);
/* There is no reply: those who wait get the problem, and nothing is kept. */
void replay_fail(struct replay *r, const struct problem *p);

/* Answers a later request, now or when the first is through. */
void replay_answer(struct replay *r, struct call *c, const uint8_t hash[32]);
bool replay_is_done(const struct replay *r);
bool replay_is_of(const struct replay *r, const struct call *c); /* the same route */
/* It stays, whatever its age, until it is let go. */
void replay_hold(struct replay *r, bool hold);
void replay_conflict(struct call *c); /* 422: the key came before with another request */
