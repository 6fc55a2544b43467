#pragma once
/* Recent executions and what they said, so that a stream that was cut can be resumed. Bounded in
 * bytes and in time: the oldest go first. */

#include "base/rope.h"
#include "loop/share.h"

#include <stdbool.h>
#include <stdint.h>

struct records;
struct record;

struct records *records_new(struct loop *l, size_t max_bytes, uint64_t ttl_ms);

/* A new one, held open until record_end. */
struct record *record_new(struct records *r, const char *id, const char *tenant);
/* Its next event has a number above this. */
void record_skip(struct record *rec, uint64_t number);
/* `json` is the event's object. Returns its number. The oldest events are dropped when there are
 * too many for one record, and at once those that are too large; their numbers are missing then. */
uint64_t record_event(struct record *rec, const char *type, const char *json, size_t len);
uint64_t record_last(const struct record *rec); /* the number of the last event */
/* The whole result, or an error object; no more events after it. */
void record_end(struct record *rec, const char *json);
void record_end_with(struct record *rec, struct rope *result); /* takes it */

/* NULL when it is unknown, forgotten, or another tenant's. Borrowed until the loop's next turn. */
struct record *records_find(struct records *r, const char *tenant, const char *id);
bool record_is_done(const struct record *rec);
const char *record_id(const struct record *rec);
double record_created(const struct record *rec);
const struct rope *record_result(const struct record *rec);

/* A follower is told of every event after number `after`, now and as they come; NULL type at the
 * end. It takes itself out when it leaves before that.
 *
 * SECURITY: there may be a thousand of them, and each gets a copy. Whoever can hold the program is
 * told at once; the others may be told a few turns of the loop later, all in their order. */
struct follower {
    struct follower *next;
    bool is_first;           /* the one that can hold the program */
    struct loop_sharer turn; /* it waits for that when there is something to tell it */
    struct record *record;   /* NULL when it is not told of new ones */
    uint64_t after;          /* the last that it was told of */
    bool paused; /* set by fn when it can take no more: it is left out until it follows again */
    void (*fn)(struct follower *f, uint64_t number, const char *type, const char *json, size_t len);
    void *arg;
};
void record_follow(struct record *rec, struct follower *f);
void record_unfollow(struct follower *f);
