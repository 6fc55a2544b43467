/* See events.h. */

#include "api/jobs/events.h"

#include "api/jobs/records.h"
#include "base/num.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct following {
    struct call *call;
    struct follower f;
    struct events_source from; /* while it goes on */
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

static const struct field after_fields[] = {
    {.name = "after",
     .type = FIELD_INT,
     .flags = FIELD_MIN,
     .fallback = "0",
     .help = "the number of the last event that you have"},
};
const struct schema events_query = {"", after_fields, 1, false};

bool events_after(struct call *c, uint64_t *ret) {
    const struct num_rule rule = {"after", 0, UINT64_MAX / 2};
    const char *after = call_query(c, "after");
    struct err e;
    *ret = 0;
    if (!after)
        after = http_header(c->req, "Last-Event-ID");
    if (!after || num_u64(after, &rule, ret, &e) == 0)
        return true;
    call_bad_value(c, "give the number of the last event that you have", "%s", e.text);
    return false;
}

const char *events_sign(bool lines) {
    return lines ? "\n" : ": alive\n\n";
}

static void free_following(void *state) {
    struct following *w = state;
    record_unfollow(&w->f);
    loop_timer_stop(w->call->api->o.loop, &w->alive);
    if (w->from.arg)
        w->from.leave(w->from.arg);
    free(w);
}

/* All that stands before an event's data, which is written as it is: it may be long. */
static void put_head(const struct following *w, uint64_t number, const char *type, struct buf *to) {
    if (!w->lines) {
        buf_addf(to, "id: %llu\nevent: %s\ndata: ", (unsigned long long)number, type);
        return;
    }
    struct jw j = JW_INIT(to);
    jw_object(&j);
    jw_key_uint(&j, "seq", number);
    jw_key_str(&j, "event", type);
    jw_key(&j, "data");
}

static void events_on_event(struct follower *f, uint64_t number, const char *type, const char *json,
                            size_t len) {
    struct following *w = f->arg;
    struct http_req *r = w->call->req;
    AUTO_BUF head = BUF_INIT;
    if (!type) {
        w->from.arg = NULL; /* it is over */
        http_end(r);
        return;
    }
    put_head(w, number, type, &head);
    http_write(r, head.data, head.len);
    http_write(r, json, len);
    http_write(r, w->lines ? "}\n" : "\n\n", 2);
    bool full = http_backlog(r) > HTTP_HIGH_WATER;
    if (w->from.arg && full)
        w->from.hold(w->from.arg, true);
    else if (!w->from.arg)
        f->paused = full;
    loop_timer_in_ms(w->call->api->o.loop, &w->alive, EVENTS_ALIVE_MS);
}

static void events_on_alive(struct timer *t) {
    struct following *w = t->arg;
    http_write(w->call->req, events_sign(w->lines), strlen(events_sign(w->lines)));
    loop_timer_in_ms(w->call->api->o.loop, t, EVENTS_ALIVE_MS);
}

/* The reader has caught up: on from the last event that it got. */
static void events_on_drain(struct http_req *r) {
    struct call *c = http_user(r);
    struct following *w = c ? c->state : NULL;
    if (w && w->from.arg)
        w->from.hold(w->from.arg, false);
    if (!w || !w->f.paused)
        return;
    struct record *rec = records_find(c->api->records, c->who.tenant, w->id);
    if (rec)
        record_follow(rec, &w->f);
    else
        http_end(r); /* forgotten meanwhile */
}

static void events_on_gone(struct http_req *r) {
    struct call *c = http_user(r);
    struct following *w = c ? c->state : NULL;
    if (!w || !w->from.arg)
        return;
    void *arg = w->from.arg;
    w->from.arg = NULL;
    record_unfollow(&w->f);
    w->from.leave(arg);
}

void events_stream(struct call *c, struct record *rec, enum events_form form, uint64_t after,
                   const struct events_source *from) {
    struct following *w = xcalloc(1, sizeof *w);
    w->call = c;
    w->from = *from;
    w->lines = form == EVENTS_LINES;
    w->f = (struct follower){
        .is_first = from->arg != NULL, .after = after, .fn = events_on_event, .arg = w};
    w->alive = (struct timer){.fn = events_on_alive, .arg = w};
    c->state = w;
    c->state_done = free_following;
    snprintf(w->id, sizeof w->id, "%s", record_id(rec));
    http_on_drain(c->req, events_on_drain);
    http_on_gone(c->req, events_on_gone);
    http_add_header(c->req, "Cache-Control", "no-cache");
    http_add_header(c->req, "X-Accel-Buffering", "no");
    http_set_sign(c->req, events_sign(w->lines));
    http_stream(c->req, 200,
                w->lines ? "application/x-ndjson" : "text/event-stream; charset=utf-8");
    record_follow(rec, &w->f);
}
