/* See stream.h. */

#include "mcp/stream.h"

#include "base/fd.h"
#include "base/list.h"
#include "http/http.h"
#include "mcp/internal.h"
#include "mcp/sse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PRIMES_FROM "2025-11-25" /* before, clients take an event without data for a message */

struct event {
    uint64_t number;
    struct buf json;
};

struct stream {
    struct stream *next;
    struct mcp *m;       /* borrowed */
    struct visit *visit; /* borrowed; NULL: no client is there */
    char id[ID_MAX], owner[128];
    bool takes_sse, takes_json; /* of the first client */
    bool keeps;                 /* legacy: its events are kept for who comes back */
    bool primes, is_batch, is_open;
    unsigned waiting; /* answers that are still to come */
    struct buf batch; /* those that have come, for one reply */
    int status;
    struct event *events; /* owned */
    size_t n, cap, bytes;
    uint64_t last;
    struct timer soon, alive, forget;
};

static void stream_free(struct stream *s);

/* ---- what is kept ---- */

static void drop_events(struct stream *s) {
    for (size_t i = 0; i < s->n; i++)
        buf_done(&s->events[i].json);
    s->m->stream_bytes -= s->bytes;
    s->n = s->bytes = 0;
}

static bool is_spare(const struct stream *s) {
    return !s->visit;
}

/* The oldest that nobody reads; first of those that are over. `owner` NULL: of anybody. */
static struct stream *stream_victim(const struct mcp *m, const char *owner) {
    for (unsigned busy = 0; busy < 2; busy++)
        for (struct stream *s = m->streams; s; s = s->next)
            if (is_spare(s) && (s->waiting > 0) == (busy == 1) &&
                (!owner || strcmp(s->owner, owner) == 0))
                return s;
    return NULL;
}

/* Nobody gets the answers any more. */
static void stream_forget(struct stream *s) {
    for (struct mcp_call *c = s->m->calls; c;) {
        if (c->to != s) {
            c = c->next;
            continue;
        }
        call_alone(c);
        c = s->m->calls; /* a handler may have answered, and more */
    }
    stream_free(s);
}

/* SECURITY: an owner may have half of it all. */
static void stream_make_room(struct stream *of) {
    struct mcp *m = of->m;
    unsigned all = 0, own = 0;
    size_t own_bytes = 0;
    for (struct stream *s = m->streams; s; s = s->next) {
        bool is_own = strcmp(s->owner, of->owner) == 0;
        all += is_spare(s);
        own += is_own && is_spare(s);
        own_bytes += is_own ? s->bytes : 0;
    }
    const char *owner = own > STREAMS_MAX / 2 || own_bytes > STREAM_BYTES / 2 ? of->owner : NULL;
    if (!owner && all <= STREAMS_MAX && m->stream_bytes <= STREAM_BYTES)
        return;
    struct stream *victim = stream_victim(m, owner);
    if (victim && victim != of)
        stream_forget(victim);
    else
        drop_events(of);
}

static void stream_keep(struct stream *s, const struct buf *message) {
    if (s->n == s->cap) {
        s->cap = s->cap ? 2 * s->cap : 8;
        s->events = xrealloc(s->events, s->cap * sizeof *s->events);
    }
    struct event *e = &s->events[s->n++];
    *e = (struct event){.number = s->last, .json = BUF_INIT};
    buf_add(&e->json, message->data, message->len);
    s->bytes += message->len + sizeof *e;
    s->m->stream_bytes += message->len + sizeof *e;
    stream_make_room(s);
}

/* ---- its life ---- */

static void stop_clocks(struct stream *s) {
    struct loop *l = s->m->host.loop;
    loop_timer_stop(l, &s->soon);
    loop_timer_stop(l, &s->alive);
    loop_timer_stop(l, &s->forget);
}

static void stream_free(struct stream *s) {
    stop_clocks(s);
    if (s->visit)
        s->visit->stream = NULL;
    LIST_REMOVE(&s->m->streams, s, next);
    drop_events(s);
    free(s->events);
    buf_done(&s->batch);
    free(s);
}

static void stream_on_soon(struct timer *t) {
    stream_open(t->arg);
}

static void stream_on_forget(struct timer *t) {
    stream_forget(t->arg);
}

static void stream_on_alive(struct timer *t) {
    struct stream *s = t->arg;
    if (!s->visit || !s->visit->req)
        return;
    http_write(s->visit->req, SSE_ALIVE, strlen(SSE_ALIVE));
    loop_timer_in_ms(s->m->host.loop, t, STREAM_ALIVE_MS);
}

static bool accepts(const char *accept, const char *type, const char *any) {
    return accept && (strstr(accept, type) || strstr(accept, any));
}

struct stream *stream_new(struct visit *v, unsigned waiting, bool is_batch) {
    struct stream *s = xcalloc(1, sizeof *s);
    const char *accept = http_header(v->req, "Accept");
    *s = (struct stream){.m = v->m,
                         .visit = v,
                         .takes_sse = accepts(accept, "text/event-stream", "text/*"),
                         .takes_json = !accept ||
                                       accepts(accept, "application/json", "application/*") ||
                                       strstr(accept, "*/*"),
                         .keeps = !v->is_modern,
                         .primes = !v->is_modern && strcmp(v->version, PRIMES_FROM) >= 0,
                         .is_batch = is_batch,
                         .waiting = waiting,
                         .batch = BUF_INIT,
                         .status = 200};
    id_make("", s->id, sizeof s->id);
    snprintf(s->owner, sizeof s->owner, "%s", v->who->owner);
    s->soon = (struct timer){.fn = stream_on_soon, .arg = s};
    s->alive = (struct timer){.fn = stream_on_alive, .arg = s};
    s->forget = (struct timer){.fn = stream_on_forget, .arg = s};
    v->stream = s;
    LIST_APPEND(&v->m->streams, s, next);
    if (s->takes_sse)
        loop_timer_in_ms(v->m->host.loop, &s->soon, STREAM_SOON_MS);
    return s;
}

/* ---- what is sent ---- */

static struct http_req *req_of(const struct stream *s) {
    return s->visit ? s->visit->req : NULL;
}

static void begin_events(struct stream *s, struct http_req *r) {
    http_add_header(r, "Cache-Control", "no-cache");
    http_add_header(r, "X-Accel-Buffering", "no");
    http_set_sign(r, SSE_ALIVE);
    http_stream(r, 200, "text/event-stream");
    loop_timer_in_ms(s->m->host.loop, &s->alive, STREAM_ALIVE_MS);
}

static void write_event(struct stream *s, uint64_t number, const struct buf *message) {
    struct http_req *r = req_of(s);
    AUTO_BUF text = BUF_INIT;
    char id[ID_MAX + 24];
    snprintf(id, sizeof id, "%s:%llu", s->id, (unsigned long long)number);
    sse_write(&text, s->keeps ? id : NULL, message->data, message->len);
    if (!r)
        return;
    http_write(r, text.data, text.len);
    loop_timer_in_ms(s->m->host.loop, &s->alive, STREAM_ALIVE_MS);
}

bool stream_open(struct stream *s) {
    struct http_req *r = req_of(s);
    if (s->is_open)
        return true;
    if (!r || !s->takes_sse)
        return false;
    loop_timer_stop(s->m->host.loop, &s->soon);
    s->is_open = true;
    begin_events(s, r);
    if (s->primes) {
        AUTO_BUF first = BUF_INIT;
        buf_addf(&first, "id: %s:0\nretry: %d\ndata: \n\n", s->id, STREAM_RETRY_MS);
        http_write(r, first.data, first.len);
    }
    return true;
}

void stream_message(struct stream *s, const struct buf *message) {
    if (!stream_open(s))
        return;
    s->last++;
    if (s->keeps)
        stream_keep(s, message);
    write_event(s, s->last, message);
}

/* All answers were given: the client has its reply. */
static void stream_end(struct stream *s) {
    struct http_req *r = req_of(s);
    stop_clocks(s);
    if (r && s->is_open)
        http_end(r);
    else if (r && s->is_batch && s->batch.len) {
        buf_addc(&s->batch, ']');
        http_reply(r, 200, "application/json", s->batch.data, s->batch.len);
    } else if (r)
        http_reply(r, s->batch.len ? s->status : 202, s->batch.len ? "application/json" : NULL,
                   s->batch.data, s->batch.len);
    if (s->visit) {
        s->visit->stream = NULL;
        s->visit = NULL;
    }
    if (s->keeps && s->is_open && s->n > 0)
        loop_timer_in_ms(s->m->host.loop, &s->forget, STREAM_KEPT_MS);
    else
        stream_free(s);
}

void stream_answer(struct stream *s, int status, const struct buf *message) {
    s->waiting--;
    if (message && (s->is_open || !s->takes_json))
        stream_message(s, message);
    else if (message) {
        if (s->is_batch)
            buf_addc(&s->batch, s->batch.len ? ',' : '[');
        buf_add(&s->batch, message->data, message->len);
        s->status = status;
    }
    if (s->waiting == 0)
        stream_end(s);
}

void stream_header(struct stream *s, const char *name, const char *value) {
    if (req_of(s) && !s->is_open)
        http_add_header(req_of(s), name, value);
}

bool stream_is_full(const struct stream *s) {
    return req_of(s) && http_backlog(req_of(s)) > HTTP_HIGH_WATER;
}

/* ---- clients that go, and come back ---- */

void stream_break(struct stream *s, unsigned retry_ms) {
    if (!s->keeps || !stream_open(s) || !req_of(s))
        return;
    AUTO_BUF retry = BUF_INIT;
    buf_addf(&retry, "retry: %u\n\n", retry_ms);
    http_write(req_of(s), retry.data, retry.len);
    http_end(req_of(s));
    s->visit->stream = NULL;
    s->visit = NULL;
    loop_timer_stop(s->m->host.loop, &s->alive);
    stream_make_room(s);
}

bool stream_give_up(struct stream *s) {
    bool begun = s->is_open;
    stream_free(s);
    return begun;
}

void stream_left(struct stream *s) {
    s->visit->stream = NULL;
    s->visit = NULL;
    loop_timer_stop(s->m->host.loop, &s->soon);
    loop_timer_stop(s->m->host.loop, &s->alive);
    if (s->keeps && s->is_open)
        stream_make_room(s);
    else
        stream_forget(s);
}

static void replay(struct stream *s, uint64_t after) {
    for (size_t i = 0; i < s->n; i++)
        if (s->events[i].number > after)
            write_event(s, s->events[i].number, &s->events[i].json);
}

static bool read_event_id(const char *text, size_t *ret_id, uint64_t *ret_number) {
    const char *colon = strrchr(text, ':');
    char *end;
    if (!colon || colon[1] < '0' || colon[1] > '9' || strlen(colon) > 20)
        return false;
    *ret_id = (size_t)(colon - text);
    *ret_number = strtoull(colon + 1, &end, 10);
    return *end == '\0';
}

bool stream_resume(struct visit *v, const char *last) {
    uint64_t after;
    size_t len;
    struct stream *s = v->m->streams;
    if (!read_event_id(last, &len, &after))
        return false;
    while (s && (strlen(s->id) != len || memcmp(s->id, last, len) != 0 ||
                 strcmp(s->owner, v->who->owner) != 0))
        s = s->next;
    if (!s || !s->keeps)
        return false;
    if (s->visit) { /* the earlier connection is a dead one, or soon */
        http_end(s->visit->req);
        s->visit->stream = NULL;
    }
    s->visit = v;
    v->stream = s;
    loop_timer_stop(s->m->host.loop, &s->forget);
    begin_events(s, v->req);
    replay(s, after);
    if (s->waiting == 0)
        stream_end(s);
    return true;
}
