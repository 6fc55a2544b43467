/* See records.h. */

#include "api/records.h"

#include "base/clock.h"
#include "base/json.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RECORD_MAX (4u << 20) /* bytes of events in one record */
#define CHAINS     8192

struct event {
    uint64_t number;
    char type[12];
    char *json; /* owned */
    size_t len;
};

struct record {
    struct record *newer, *chain;
    struct records *all;
    char id[48], tenant[65];
    double created;
    uint64_t ended_ns;    /* 0: it still goes on */
    struct event *events; /* the last of them: `nevents` from `first` on */
    size_t first, nevents, cap, bytes;
    uint64_t last;
    bool apart; /* stdout and stderr are in `text`, not in the result */
    struct buf result, text[2];
    struct follower *followers;
};

struct records {
    struct loop *loop;
    struct record *oldest, **end;
    struct record *chains[CHAINS]; /* by id */
    size_t bytes, max_bytes;
    uint64_t ttl_ns;
    struct timer timer;
};

static void record_free(struct record *rec) {
    for (size_t i = 0; i < rec->nevents; i++)
        free(rec->events[rec->first + i].json);
    free(rec->events);
    buf_done(&rec->result);
    buf_done(&rec->text[0]);
    buf_done(&rec->text[1]);
    free(rec);
}

static size_t bytes_of(const struct record *rec) {
    return rec->bytes + rec->result.len + rec->text[0].len + rec->text[1].len;
}

static struct record **chain_of(struct records *r, const char *id) {
    uint32_t h = 2166136261u;
    for (; *id; id++)
        h = (h ^ (unsigned char)*id) * 16777619u;
    return &r->chains[h % CHAINS];
}

static void forget(struct records *r, struct record **at) {
    struct record *rec = *at, **link = chain_of(r, rec->id);
    while (*link != rec)
        link = &(*link)->chain;
    *link = rec->chain;
    *at = rec->newer;
    if (r->end == &rec->newer)
        r->end = at;
    r->bytes -= bytes_of(rec);
    record_free(rec);
}

/* Those that have ended and are too old, and as many more as are too much. */
static void tidy(struct records *r) {
    uint64_t now = now_ns();
    for (struct record **at = &r->oldest; *at;) {
        struct record *rec = *at;
        bool old = rec->ended_ns && now - rec->ended_ns > r->ttl_ns;
        if (rec->ended_ns && (old || r->bytes > r->max_bytes))
            forget(r, at);
        else if (rec->ended_ns)
            break; /* the rest is younger, but for those that go on */
        else
            at = &rec->newer;
    }
    if (r->oldest)
        loop_timer(r->loop, &r->timer, now + r->ttl_ns / 4 + 1000000000u);
}

static void on_timer(struct timer *t) {
    tidy(t->arg);
}

struct records *records_new(struct loop *l, size_t max_bytes, uint64_t ttl_ns) {
    struct records *r = xcalloc(1, sizeof *r);
    *r = (struct records){.loop = l, .max_bytes = max_bytes, .ttl_ns = ttl_ns};
    r->end = &r->oldest;
    r->timer = (struct timer){.fn = on_timer, .arg = r};
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
    rec->result = rec->text[0] = rec->text[1] = (struct buf)BUF_INIT;
    rec->created = (double)now.tv_sec + (double)now.tv_nsec / 1e9;
    copy(rec->id, sizeof rec->id, id);
    copy(rec->tenant, sizeof rec->tenant, tenant);
    rec->bytes = sizeof *rec;
    r->bytes += rec->bytes;
    *r->end = rec;
    r->end = &rec->newer;
    struct record **chain = chain_of(r, rec->id);
    rec->chain = *chain;
    *chain = rec;
    tidy(r);
    return rec;
}

/* False when it wants no more for now. */
static bool tell(struct follower *f, uint64_t number, const char *type, const char *json,
                 size_t len) {
    f->after = number;
    f->fn(f, number, type, json, len);
    if (f->paused)
        record_unfollow(f);
    return !f->paused;
}

static void drop_oldest(struct record *rec) {
    struct event *e = &rec->events[rec->first];
    rec->bytes -= e->len + sizeof *e;
    rec->all->bytes -= e->len + sizeof *e;
    free(e->json);
    rec->first++;
    rec->nevents--;
}

static struct event *add_event(struct record *rec) {
    if (rec->first > 0 && rec->first + rec->nevents == rec->cap) {
        memmove(rec->events, rec->events + rec->first, rec->nevents * sizeof *rec->events);
        rec->first = 0;
    }
    if (rec->nevents * 2 >= rec->cap) { /* so that it moves once in as many as it has */
        rec->cap = rec->cap ? rec->cap * 2 : 8;
        rec->events = xrealloc(rec->events, rec->cap * sizeof *rec->events);
    }
    return &rec->events[rec->first + rec->nevents++];
}

static void keep(struct record *rec, uint64_t number, const char *type, const char *json,
                 size_t len) {
    struct event *e = add_event(rec);
    *e = (struct event){.number = number, .json = xmalloc(len + 1), .len = len};
    copy(e->type, sizeof e->type, type);
    memcpy(e->json, json, len);
    e->json[len] = '\0';
    rec->bytes += len + sizeof *e;
    rec->all->bytes += len + sizeof *e;
}

uint64_t record_event(struct record *rec, const char *type, const char *json, size_t len) {
    uint64_t number = ++rec->last;
    bool must =
        strcmp(type, "end") == 0 || strcmp(type, "error") == 0 || strcmp(type, "failed") == 0;
    while (!must && len < RECORD_MAX && rec->nevents > 0 && rec->bytes + len >= RECORD_MAX)
        drop_oldest(rec);
    if (must || len < RECORD_MAX)
        keep(rec, number, type, json, len);
    for (struct follower *f = rec->followers, *next; f; f = next) {
        next = f->next;
        tell(f, number, type, json, len);
    }
    return number;
}

void record_skip(struct record *rec, uint64_t number) {
    rec->last = number;
}

uint64_t record_last(const struct record *rec) {
    return rec->last;
}

void record_end(struct record *rec, const char *json, size_t len) {
    rec->ended_ns = now_ns();
    buf_add(&rec->result, json, len);
    rec->all->bytes += len;
    while (rec->followers) {
        struct follower *f = rec->followers;
        record_unfollow(f);
        f->fn(f, rec->last, NULL, NULL, 0);
    }
}

void record_end_with(struct record *rec, const char *json, size_t len, struct buf text[2]) {
    rec->apart = true;
    for (int i = 0; i < 2; i++) {
        rec->text[i] = text[i];
        rec->all->bytes += text[i].len;
        text[i] = (struct buf)BUF_INIT;
    }
    record_end(rec, json, len);
}

static void put_together(struct record *rec) {
    struct buf whole = BUF_INIT;
    struct jw j = JW_INIT(&whole);
    size_t before = bytes_of(rec);
    jw_object(&j);
    jw_key(&j, "stdout");
    jw_strn(&j, rec->text[0].data, rec->text[0].len);
    jw_key(&j, "stderr");
    jw_strn(&j, rec->text[1].data, rec->text[1].len);
    buf_addc(&whole, ',');
    buf_add(&whole, rec->result.data + 1, rec->result.len - 1);
    buf_done(&rec->text[0]);
    buf_done(&rec->text[1]);
    buf_done(&rec->result);
    rec->result = whole;
    rec->apart = false;
    rec->all->bytes += bytes_of(rec) - before;
}

struct record *records_find(struct records *r, const char *tenant, const char *id) {
    tidy(r);
    for (struct record *rec = *chain_of(r, id); rec; rec = rec->chain) {
        if (strcmp(rec->id, id) == 0)
            return strcmp(rec->tenant, tenant) == 0 ? rec : NULL;
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
const struct buf *record_result(struct record *rec) {
    if (rec->apart)
        put_together(rec);
    return &rec->result;
}

void record_follow(struct record *rec, struct follower *f) {
    f->record = NULL;
    f->paused = false;
    for (size_t i = 0; i < rec->nevents; i++) {
        const struct event *e = &rec->events[rec->first + i];
        if (e->number > f->after && !tell(f, e->number, e->type, e->json, e->len))
            return;
    }
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
    for (struct follower **at = &f->record->followers; *at; at = &(*at)->next) {
        if (*at == f) {
            *at = f->next;
            break;
        }
    }
    f->record = NULL;
}
