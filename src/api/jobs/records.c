/* See records.h. When there is too much, the oldest of the tenant with the most goes first. Those
 * that go on are not forgotten; when nothing else is left, they lose the first half of their
 * events.
 *
 * Those who follow share a part of each turn of the loop. Who is behind is told, in its turn, of
 * what the record keeps by then.
 *
 * SECURITY: a tenant's records may have a million small events, and many of them are forgotten at
 * once: when they are old, or after a large result. So what is forgotten is freed over as many
 * turns as that takes. */

#include "api/jobs/records.h"

#include "api/core/shares.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/list.h"
#include "base/window.h"
#include "loop/crew.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RECORD_MAX  (4u << 20)  /* bytes of events in one record */
#define RECORD_LAST (64u << 10) /* of those: at least so many stay while it goes on */
#define CHAINS      8192
#define TELLING_NS  1000000u /* of a turn, for followers that can wait */
/* What is freed in a turn: events, or bytes of them. */
#define FREED_MOST  4000u
#define FREED_BYTES (4u << 20)

struct event {
    uint64_t number;
    char type[12];
    char *json; /* owned */
    size_t len;
};

struct record {
    struct share_item item; /* its bytes are those of all that the record holds */
    struct record *chain;
    struct records *all;
    char id[48];
    double created;
    uint64_t ended_ns;    /* 0: it still goes on */
    struct event *events; /* the last of them: `nevents` from `first` on */
    size_t first, nevents, cap;
    size_t bytes; /* of the events */
    uint64_t last;
    struct rope result; /* shared with the replies that it is in */
    struct follower *followers;
};

struct records {
    struct loop *loop;
    struct shares shares;
    struct record *chains[CHAINS]; /* by id */
    size_t max_bytes;
    uint64_t ttl_ms;
    struct timer timer;
    struct loop_share telling; /* of followers, in a turn of the loop */
    struct record *forgotten;  /* by `chain`: to be freed, */
    struct deferred freeing;   /* in this turn and in the next ones */
};

static void drop_oldest(struct record *rec) {
    struct event *e = &rec->events[rec->first];
    rec->bytes -= e->len + sizeof *e;
    free(e->json);
    rec->first++;
    rec->nevents--;
}

static void record_free(struct record *rec) {
    free(rec->events);
    rope_done(&rec->result);
    free(rec);
}

static void record_free_some(struct deferred *d) {
    struct records *r = d->arg;
    size_t n = 0, bytes = 0;
    while (r->forgotten && n < FREED_MOST && bytes < FREED_BYTES) {
        struct record *rec = r->forgotten;
        size_t before = rec->bytes;
        n++;
        if (rec->nevents) {
            drop_oldest(rec);
            bytes += before - rec->bytes;
        } else {
            r->forgotten = rec->chain;
            bytes += rec->result.bytes;
            record_free(rec);
        }
    }
    if (r->forgotten)
        loop_defer(r->loop, d);
}

static void count(struct record *rec) {
    shares_resize(&rec->all->shares, &rec->item, sizeof *rec + rec->bytes + rec->result.bytes);
}

static struct record **chain_of(struct records *r, const char *id) {
    uint32_t h = 2166136261u;
    for (; *id; id++)
        h = (h ^ (unsigned char)*id) * 16777619u;
    return &r->chains[h % CHAINS];
}

static void record_forget(struct record *rec) {
    struct record **link = chain_of(rec->all, rec->id);
    while (*link != rec)
        link = &(*link)->chain;
    *link = rec->chain;
    shares_remove(&rec->all->shares, &rec->item);
    rec->chain = rec->all->forgotten;
    rec->all->forgotten = rec;
    loop_defer(rec->all->loop, &rec->all->freeing);
}

/* It has ended, and every follower was told. */
static bool is_over(const struct record *rec) {
    return rec->ended_ns != 0 && !rec->followers;
}

static bool is_victim(const struct share_item *it) {
    return is_over((const struct record *)it);
}

static void record_forget_old(struct records *r, struct share *of, uint64_t now) {
    struct share_item *newer;
    for (struct share_item *it = of->oldest; it; it = newer) {
        struct record *rec = (struct record *)it;
        newer = it->newer;
        if (rec->ended_ns && now - rec->ended_ns <= ms_to_ns(r->ttl_ms))
            return; /* the rest is younger, but for those that go on */
        if (is_over(rec))
            record_forget(rec); /* with the last one the share is gone, too */
    }
}

/* Forgets those that ended too long ago, then the oldest that have ended, until under the limit. */
static void record_tidy(struct records *r) {
    uint64_t now = now_ns();
    struct share_item *it;
    for (struct share *of = r->shares.first, *next; of; of = next) {
        next = of->next;
        record_forget_old(r, of, now);
    }
    while (r->shares.bytes > r->max_bytes && (it = shares_victim(&r->shares, is_victim)))
        record_forget((struct record *)it);
    if (r->shares.n)
        loop_timer_in_ms(r->loop, &r->timer, r->ttl_ms / 4 + 1000);
}

static void record_on_timer(struct timer *t) {
    record_tidy(t->arg);
}

/* ---- followers ---- */

/* False when it wants no more for now. */
static bool record_tell(struct follower *f, uint64_t number, const char *type, const char *json,
                        size_t len) {
    f->after = number;
    f->fn(f, number, type, json, len);
    if (f->paused)
        record_unfollow(f);
    return !f->paused;
}

/* Of what is kept. False when it wants no more for now. */
static bool tell_kept(const struct record *rec, struct follower *f) {
    for (size_t i = 0; i < rec->nevents; i++) {
        const struct event *e = &rec->events[rec->first + i];
        if (e->number > f->after && !record_tell(f, e->number, e->type, e->json, e->len))
            return false;
    }
    return true;
}

static void tell_end(const struct record *rec, struct follower *f) {
    record_unfollow(f);
    f->fn(f, rec->last, NULL, NULL, 0);
}

static void follower_on_turn(struct loop_sharer *who) {
    struct follower *f = who->arg;
    const struct record *rec = f->record;
    if (tell_kept(rec, f) && rec->ended_ns)
        tell_end(rec, f);
}

/* NULL: it is told at once, since it can hold the program. */
static struct loop_share *telling_of(const struct record *rec, const struct follower *f) {
    return f->is_first ? NULL : &rec->all->telling;
}

/* False: it is behind. */
static bool may_tell(struct loop_share *s, struct follower *f) {
    return !f->turn.waits_for && (!s || loop_share_begin(s, &f->turn));
}

static void told(struct loop_share *s) {
    if (s)
        loop_share_end(s);
}

struct records *records_new(struct loop *l, size_t max_bytes, uint64_t ttl_ms) {
    struct records *r = xcalloc(1, sizeof *r);
    *r = (struct records){.loop = l, .max_bytes = max_bytes, .ttl_ms = ttl_ms};
    r->timer = (struct timer){.fn = record_on_timer, .arg = r};
    r->freeing = (struct deferred){.fn = record_free_some, .arg = r};
    loop_share_init(&r->telling, l, TELLING_NS);
    return r;
}

static void copy(char *to, size_t cap, const char *from) {
    size_t n = strnlen(from, cap - 1);
    memcpy(to, from, n);
    to[n] = '\0';
}

struct record *record_new(struct records *r, const char *id, const char *tenant) {
    struct record *rec = xcalloc(1, sizeof *rec);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    rec->all = r;
    rec->created = (double)now.tv_sec + (double)now.tv_nsec / 1e9;
    copy(rec->id, sizeof rec->id, id);
    shares_add(&r->shares, &rec->item, tenant, sizeof *rec);
    struct record **chain = chain_of(r, rec->id);
    rec->chain = *chain;
    *chain = rec;
    record_tidy(r);
    return rec;
}

static struct event *add_event(struct record *rec) {
    rec->events =
        window_room(rec->events, sizeof *rec->events, &rec->first, rec->nevents, &rec->cap);
    return &rec->events[rec->first + rec->nevents++];
}

static void record_keep(struct record *rec, uint64_t number, const char *type, const char *json,
                        size_t len) {
    struct event *e = add_event(rec);
    *e = (struct event){.number = number, .json = xmalloc(len + 1), .len = len};
    copy(e->type, sizeof e->type, type);
    memcpy(e->json, json, len);
    e->json[len] = '\0';
    rec->bytes += len + sizeof *e;
    count(rec);
}

static bool is_long(const struct share_item *it) {
    return ((const struct record *)it)->bytes > RECORD_LAST;
}

/* SECURITY: an execution that goes on may print for as long as it likes, in as many cells as a
 * tenant has. */
static void record_make_room(struct records *r) {
    struct share_item *it;
    while (r->shares.bytes > r->max_bytes && (it = shares_victim(&r->shares, is_victim)))
        record_forget((struct record *)it);
    while (r->shares.bytes > r->max_bytes && (it = shares_victim(&r->shares, is_long))) {
        struct record *rec = (struct record *)it;
        for (size_t half = rec->bytes / 2; rec->bytes > half;)
            drop_oldest(rec);
        count(rec);
    }
}

uint64_t record_event(struct record *rec, const char *type, const char *json, size_t len) {
    uint64_t number = ++rec->last;
    bool must =
        strcmp(type, "end") == 0 || strcmp(type, "error") == 0 || strcmp(type, "failed") == 0;
    while (!must && len < RECORD_MAX && rec->nevents > 0 && rec->bytes + len >= RECORD_MAX)
        drop_oldest(rec);
    if (must || len < RECORD_MAX)
        record_keep(rec, number, type, json, len);
    if (rec->all->shares.bytes > rec->all->max_bytes)
        record_make_room(rec->all);
    for (struct follower *f = rec->followers, *next; f; f = next) {
        next = f->next;
        struct loop_share *s = telling_of(rec, f); /* the follower may be gone when it was told */
        if (!may_tell(s, f))
            continue;
        record_tell(f, number, type, json, len);
        told(s);
    }
    return number;
}

void record_skip(struct record *rec, uint64_t number) {
    rec->last = number;
}

uint64_t record_last(const struct record *rec) {
    return rec->last;
}

void record_end_with(struct record *rec, struct rope *result) {
    rec->ended_ns = now_ns();
    rope_add_rope(&rec->result, result);
    rope_done(result);
    count(rec);
    for (struct follower *f = rec->followers, *next; f; f = next) {
        next = f->next;
        struct loop_share *s = telling_of(rec, f);
        if (!may_tell(s, f))
            continue;
        tell_end(rec, f);
        told(s);
    }
}

void record_end(struct record *rec, const char *json) {
    AUTO_ROPE result = ROPE_INIT;
    rope_adds(&result, json);
    record_end_with(rec, &result);
}

struct record *records_find(struct records *r, const char *tenant, const char *id) {
    record_tidy(r);
    for (struct record *rec = *chain_of(r, id); rec; rec = rec->chain) {
        if (strcmp(rec->id, id) == 0)
            return strcmp(rec->item.share->tenant, tenant) == 0 ? rec : NULL;
    }
    return NULL;
}

bool record_is_done(const struct record *rec) {
    return rec->ended_ns != 0;
}
const char *record_id(const struct record *rec) {
    return rec->id;
}
double record_created(const struct record *rec) {
    return rec->created;
}
const struct rope *record_result(const struct record *rec) {
    return &rec->result;
}

void record_follow(struct record *rec, struct follower *f) {
    f->record = NULL;
    f->paused = false;
    f->turn = (struct loop_sharer){
        .fn = follower_on_turn, .arg = f, .owner = crew_owner(rec->item.share->tenant)};
    if (!tell_kept(rec, f))
        return;
    if (rec->ended_ns) {
        f->fn(f, rec->last, NULL, NULL, 0);
        return;
    }
    f->record = rec;
    f->next = rec->followers;
    rec->followers = f;
}

void record_unfollow(struct follower *f) {
    if (!f->record)
        return;
    loop_share_leave(&f->turn);
    LIST_REMOVE(&f->record->followers, f, next);
    f->record = NULL;
}
