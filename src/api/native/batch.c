/* POST /v1/execute/batch and /v1/run/batch: many programs in one request, each result as soon as it
 * is there. A bounded number of them is under way at a time; a client that does not read holds up
 * its own batch. An item that finds the queue full is tried again when another of its batch has
 * ended, or soon: otherwise all that are left would be refused within a moment. When none of them
 * has got in for as long as a program may wait in the queue, they are refused. */

#include "api/core/body.h"
#include "api/jobs/oneshot.h"
#include "api/jobs/outlet.h"
#include "api/native/native.h"
#include "base/clock.h"
#include "base/list.h"
#include "engine/live/live.h"
#include "loop/crew.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ITEMS 10000
#define MAX_BUSY  64
#define ALIVE_MS  10000
#define AGAIN_MS  100
#define SIGN      "\n"

/* Items are checked one by one when their turn comes: a bad one does not spoil the rest. */
#define FIELDS_OF_BATCH(schema, text)                                                              \
    {.name = "items",                                                                              \
     .type = FIELD_LIST,                                                                           \
     .of = (schema),                                                                               \
     .flags = FIELD_REQUIRED | FIELD_MAX,                                                          \
     .max = MAX_ITEMS,                                                                             \
     .help = (text)},                                                                              \
        {.name = "concurrency",                                                                    \
         .type = FIELD_INT,                                                                        \
         .flags = FIELD_MIN | FIELD_MAX,                                                           \
         .min = 1,                                                                                 \
         .max = MAX_BUSY,                                                                          \
         .help = "how many run at a time; as many as the machine has room for"},

static const struct schema any_execute = {"ExecuteRequest", .open = true, .unchecked = true};
static const struct schema any_run = {"RunRequest", .open = true, .unchecked = true};
static const struct field batch_fields[] = {FIELDS_OF_BATCH(&any_execute, "execute requests")};
static const struct field run_batch_fields[] = {FIELDS_OF_BATCH(&any_run, "run requests")};
static const struct schema batch_schema = {"BatchRequest", batch_fields, 2, false};
static const struct schema run_batch_schema = {"RunBatchRequest", run_batch_fields, 2, false};

struct batch {
    struct outlet out;
    json_t *body;       /* owned: a reference, since a batch may outlive its call */
    struct body *large; /* owned, likewise; or NULL */
    json_t *items;      /* borrowed; null in the place of one that is over */
    bool shows;         /* they are run requests */
    size_t next, n, busy, most;
    size_t later[MAX_BUSY], nlater; /* found the queue full; with `busy` at most `most` */
    bool crowded;                   /* one just did */
    uint64_t out_since_ns;          /* since when none of ours has got in; 0: one is in */
    struct item *running;
    struct loop_sharer turn; /* for more of them */
    struct timer alive, more;
};

struct item {
    struct item *next;
    struct batch *batch;
    size_t index;
    struct oneshot *job;
};

static struct loop *loop_of(const struct batch *b) {
    return b->out.who.api->o.loop;
}

static void take_out(struct item *i) {
    LIST_REMOVE(&i->batch->running, i, next);
}

static void free_batch(void *state) {
    struct batch *b = state;
    loop_timer_stop(loop_of(b), &b->alive);
    loop_timer_stop(loop_of(b), &b->more);
    loop_share_leave(&b->turn);
    while (b->running) {
        struct item *i = b->running;
        b->running = i->next;
        oneshot_leave(i->job);
        free(i);
    }
    outlet_done(&b->out);
    json_decref(b->body);
    body_unref(b->large);
    free(b);
}

/* One line: the object `json` with its index as the first member. */
static void line_of(struct batch *b, size_t index, struct rope *json) {
    AUTO_BUF head = BUF_INIT;
    AUTO_ROPE out = ROPE_INIT;
    struct jw j = JW_INIT(&head);
    jw_object(&j);
    jw_key_uint(&j, "index", index);
    buf_addc(&head, ',');
    rope_add(&out, &head);
    rope_skip(json, 1);
    rope_add_rope(&out, json);
    rope_adds(&out, "\n");
    outlet_write_rope(&b->out, &out);
    if (b->out.call)
        loop_timer_in_ms(loop_of(b), &b->alive, ALIVE_MS);
}

static void line(struct batch *b, size_t index, struct buf *json) {
    AUTO_ROPE rope = ROPE_INIT;
    rope_add(&rope, json);
    line_of(b, index, &rope);
}

/* What it asked for may be large, and the rest of the batch long. */
static void forget_item(struct batch *b, size_t index) {
    json_t *item = json_incref(json_array_get(b->items, index));
    json_array_set_new(b->items, index, json_null());
    body_drop(b->large, item);
}

/* Not from within a callback of the engine's. */
static void more_soon(struct batch *b) {
    loop_share_wait(&b->out.who.api->batching, &b->turn);
}

static bool is_patient(struct batch *b) {
    uint64_t now = now_ns(), most_ms = b->out.who.api->config->queue_ms;
    if (b->busy)
        return true;
    if (!b->out_since_ns)
        b->out_since_ns = now;
    if (now - b->out_since_ns >= ms_to_ns(most_ms))
        return false;
    loop_timer_in_ms(loop_of(b), &b->more, AGAIN_MS);
    return true;
}

/* True when it will be tried again. */
static bool put_off(struct batch *b, size_t index, const struct problem *p) {
    bool full = strcmp(p->code, "queue_full") == 0 || strcmp(p->code, "memory_budget") == 0 ||
                strcmp(p->code, "no_descriptors") == 0;
    if (!full || !is_patient(b))
        return false;
    b->later[b->nlater++] = index;
    b->crowded = true;
    return true;
}

static void batch_refuse(struct batch *b, size_t index, const struct problem *p) {
    AUTO_BUF json = BUF_INIT;
    if (put_off(b, index, p))
        return;
    call_refused(b->out.who.api, p);
    problem_json(p, &json);
    line(b, index, &json);
    forget_item(b, index);
}

static void batch_on_done(void *arg, struct oneshot *x, const struct err *why) {
    struct item *i = arg;
    struct batch *b = i->batch;
    AUTO_ROPE json = ROPE_INIT;
    take_out(i);
    b->busy--;
    if (why) {
        struct problem p = problem_of(why);
        batch_refuse(b, i->index, &p);
    } else {
        oneshot_result(x, &json);
        line_of(b, i->index, &json);
        forget_item(b, i->index);
    }
    free(i);
    more_soon(b);
}

static void batch_start(struct batch *b, size_t index) {
    const json_t *body = json_array_get(b->items, index);
    AUTO_BUF errors = BUF_INIT;
    struct jw j = JW_INIT(&errors);
    jw_object(&j);
    jw_key(&j, "detail");
    jw_array(&j);
    unsigned n = fields_check(b->shows ? &run_schema : &execute_schema, body, &j);
    jw_array_end(&j);
    jw_object_end(&j);
    if (n) {
        call_add_error(&errors, 422);
        line(b, index, &errors);
        forget_item(b, index);
        return;
    }
    struct item *i = xcalloc(1, sizeof *i);
    struct problem p = {0};
    const struct oneshot_options o = {
        .body = body, .shows = b->shows, .large = b->large, .arg = i, .on_done = batch_on_done};
    *i = (struct item){.batch = b, .index = index};
    if (oneshot_start(&b->out.who, &o, &i->job, &p) < 0) {
        batch_refuse(b, index, &p);
        free(i);
        return;
    }
    i->next = b->running;
    b->running = i;
    b->busy++;
    b->out_since_ns = 0;
}

static bool has_more(const struct batch *b) {
    return b->nlater > 0 || b->next < b->n;
}

static bool may_start(const struct batch *b) {
    return b->busy < b->most && has_more(b) && !b->crowded && !outlet_is_full(&b->out);
}

/* SECURITY: an item takes the loop up to some milliseconds, and there may be many batches. */
static void batch_go_on(struct loop_sharer *turn) {
    struct batch *b = turn->arg;
    b->crowded = false;
    while (may_start(b) && !loop_share_is_spent(&b->out.who.api->batching))
        batch_start(b, b->nlater ? b->later[--b->nlater] : b->next++);
    if (may_start(b))
        more_soon(b);
    if (b->busy || has_more(b))
        return;
    loop_timer_stop(loop_of(b), &b->alive);
    outlet_end(&b->out);
    if (!b->out.call)
        free_batch(b);
}

static void batch_on_more(struct timer *t) {
    more_soon(t->arg);
}

static void batch_on_drain(struct http_req *r) {
    struct call *c = http_user(r);
    if (c && c->state)
        more_soon(c->state);
}

static void batch_on_alive(struct timer *t) {
    struct batch *b = t->arg;
    outlet_sign(&b->out, SIGN);
    loop_timer_in_ms(loop_of(b), t, ALIVE_MS);
}

static void batch_on_gone(struct http_req *r) {
    struct call *c = http_user(r);
    struct batch *b = c->state;
    if (b && outlet_leave(&b->out)) {
        loop_timer_stop(loop_of(b), &b->alive);
        more_soon(b);
    }
}

static void batch_begin(struct call *c, bool shows) {
    struct batch *b = xcalloc(1, sizeof *b);
    unsigned most = (c->api->config->max_sandboxes + 1) / 2;
    if (!outlet_open(c, &b->out)) {
        free(b);
        return;
    }
    b->body = json_incref(c->body);
    b->large = body_ref(c->large);
    b->items = json_object_get(b->body, "items");
    b->shows = shows;
    b->n = json_array_size(b->items);
    b->most = (size_t)field_int(c->body, "concurrency", most < 16 ? most : 16);
    b->alive = (struct timer){.fn = batch_on_alive, .arg = b};
    b->more = (struct timer){.fn = batch_on_more, .arg = b};
    b->turn = (struct loop_sharer){.fn = batch_go_on, .arg = b, .owner = crew_owner(c->who.tenant)};
    c->state = b;
    c->state_done = free_batch;
    http_on_drain(c->req, batch_on_drain);
    http_on_gone(c->req, batch_on_gone);
    outlet_stream(&b->out, "application/x-ndjson", NULL, SIGN);
    loop_timer_in_ms(loop_of(b), &b->alive, ALIVE_MS);
    more_soon(b);
}

static void do_batch(struct call *c) {
    batch_begin(c, false);
}

static void do_run_batch(struct call *c) {
    batch_begin(c, true);
}

static void batch_prepare(struct body *b, const json_t *request) {
    const json_t *item;
    size_t i;
    json_array_foreach(json_object_get(request, "items"), i, item) {
        body_part(b, item);
        oneshot_prepare(b, item);
    }
}

static const struct field line_fields[] = {HAS("index", FIELD_INT, .help = "of the item")};
static const struct schema line_result = {SCHEMA("BatchResult", line_fields),
                                          .with = &run_result_schema};
static const struct schema line_error = {SCHEMA("BatchError", line_fields), .with = &error_schema};
static const struct schema line_schema = {"BatchLine", ONE_OF(&line_result, &line_error)};
static const struct schema run_line_result = {SCHEMA("RunBatchResult", line_fields),
                                              .with = &cell_result_schema};
static const struct schema run_line_schema = {"RunBatchLine",
                                              ONE_OF(&run_line_result, &line_error)};

/* ---- routes ---- */

/* clang-format off */
static const struct route routes[] = {
    {{"POST", "/v1/execute/batch", "Run many programs", "execute", &batch_schema, NULL, 200,
      "one result a line, in order of completion, each with its index", "application/x-ndjson",
      .gives = &line_schema, .errors = "client_gone", .replays = true},
     do_batch, .body_max = 64 * MB, .prepare = batch_prepare},
    {{"POST", "/v1/run/batch", "Run many programs", "execute", &run_batch_schema, NULL, 200,
      "one result a line, in order of completion, each with its index", "application/x-ndjson",
      .gives = &run_line_schema, .errors = "client_gone", .replays = true},
     do_run_batch, .body_max = 64 * MB, .prepare = batch_prepare},
};
/* clang-format on */
const struct route_table batch_routes = ROUTE_TABLE(routes);
