/* See events.h. */

#include "api/events.h"

#include "api/play.h"
#include "api/records.h"
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIVE_NS 10000000000ull /* between two signs of life on a quiet stream */

struct following {
    struct call *call;
    struct follower f;
    struct play *play; /* borrowed while it runs; or NULL */
    struct timer alive;
    bool lines;  /* NDJSON, not SSE */
    char id[48]; /* of the execution */
};

enum events_form events_wanted(const struct call *c) {
    const char *accept = http_header(c->req, "Accept");
    if (accept && strstr(accept, "application/x-ndjson"))
        return EVENTS_LINES;
    return accept && strstr(accept, "text/event-stream") ? EVENTS_SSE : EVENTS_NONE;
}

static const char *sign_of(const struct following *w) {
    return w->lines ? "\n" : ": alive\n\n";
}

static void free_following(void *state) {
    struct following *w = state;
    record_unfollow(&w->f);
    loop_timer_stop(w->call->api->o.loop, &w->alive);
    if (w->play)
        play_leave(w->play);
    free(w);
}

static void on_event(struct follower *f, uint64_t number, const char *type, const char *json,
                     size_t len) {
    struct following *w = f->arg;
    AUTO_BUF frame = BUF_INIT;
    if (!type) {
        w->play = NULL; /* it is over */
        http_end(w->call->req);
        return;
    }
    if (w->lines)
        buf_addf(&frame, "{\"seq\":%llu,\"event\":\"%s\",\"data\":", (unsigned long long)number,
                 type);
    else
        buf_addf(&frame, "id: %llu\nevent: %s\ndata: ", (unsigned long long)number, type);
    buf_add(&frame, json, len);
    buf_adds(&frame, w->lines ? "}\n" : "\n\n");
    http_write(w->call->req, frame.data, frame.len);
    bool full = http_backlog(w->call->req) > HTTP_HIGH_WATER;
    if (w->play && full)
        play_hold(w->play, true);
    else if (!w->play)
        f->paused = full;
    loop_timer(w->call->api->o.loop, &w->alive, now_ns() + ALIVE_NS);
}

static void on_alive(struct timer *t) {
    struct following *w = t->arg;
    http_write(w->call->req, sign_of(w), strlen(sign_of(w)));
    loop_timer(w->call->api->o.loop, t, now_ns() + ALIVE_NS);
}

/* The reader has caught up: on from the last event that it got. */
static void on_drain(struct http_req *r) {
    struct call *c = http_user(r);
    struct following *w = c ? c->state : NULL;
    if (w && w->play)
        play_hold(w->play, false);
    if (!w || !w->f.paused)
        return;
    struct record *rec = records_find(c->api->records, c->tenant, w->id);
    if (rec)
        record_follow(rec, &w->f);
    else
        http_end(r); /* forgotten meanwhile */
}

static void on_gone(struct http_req *r) {
    struct call *c = http_user(r);
    struct following *w = c ? c->state : NULL;
    if (!w || !w->play)
        return;
    struct play *x = w->play;
    w->play = NULL;
    record_unfollow(&w->f);
    play_leave(x);
}

void events_stream(struct call *c, struct record *rec, enum events_form form, uint64_t after,
                   struct play *play) {
    struct following *w = xcalloc(1, sizeof *w);
    w->call = c;
    w->play = play;
    w->lines = form == EVENTS_LINES;
    w->f = (struct follower){.after = after, .fn = on_event, .arg = w};
    w->alive = (struct timer){.fn = on_alive, .arg = w};
    c->state = w;
    c->state_done = free_following;
    snprintf(w->id, sizeof w->id, "%s", record_id(rec));
    http_on_drain(c->req, on_drain);
    http_on_gone(c->req, on_gone);
    http_add_header(c->req, "Cache-Control", "no-cache");
    http_add_header(c->req, "X-Accel-Buffering", "no");
    http_set_sign(c->req, sign_of(w));
    http_stream(c->req, 200,
                w->lines ? "application/x-ndjson" : "text/event-stream; charset=utf-8");
    record_follow(rec, &w->f);
}
