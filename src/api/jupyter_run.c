/* See jupyter.h. What runs in a kernel for Jupyter's clients: cells, and messages of comms, one
 * after the other in the order in which they came. Each is an execution as those of the native API
 * are; its events become messages here, all of which leave before its reply does. */

#include "api/jupyter.h"

#include "api/paths.h"
#include "api/play.h"
#include "base/clock.h"
#include "base/fd.h"
#include "http/ws.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_QUEUE    256
#define QUEUE_BYTES  (64u << 20)
#define SAY_LATER_NS 50000000u
#define PRINTED_MAX  (1u << 20) /* bytes of one message */
#define PAYLOADS_MAX (16u << 20)
#define ABORTED      "{\"status\":\"aborted\"}"

/* ---- requests ---- */

struct jupyter_request *jupyter_request(struct jupyter_client *c, const struct jupyter_in *m,
                                        const char *reply) {
    struct jupyter_request *r = xcalloc(1, sizeof *r);
    r->hub = c->hub;
    r->client = c;
    memcpy(r->session, c->session, sizeof r->session);
    r->channel = strcmp(m->channel, "control") == 0 ? "control" : "shell";
    r->reply = reply;
    r->parent = json_dumps(m->header, JSON_COMPACT);
    r->payloads = (struct buf)BUF_INIT;
    r->who = *c->call;
    r->who.req = NULL;
    r->who.state = NULL;
    r->who.counted = false;
    return r;
}

void jupyter_request_free(struct jupyter_request *r) {
    if (!r)
        return;
    json_decref(r->body);
    buf_done(&r->payloads);
    free(r->parent);
    free(r->extra);
    free(r->expressions);
    free(r->error);
    free(r);
}

static bool is_cell(const struct jupyter_request *r) {
    return r->reply != NULL;
}

static size_t size_of(const struct jupyter_request *r) {
    return sizeof *r + json_string_length(json_object_get(r->body, "code")) +
           (r->extra ? strlen(r->extra) : 0) + strlen(r->parent);
}

/* The inside of an object. */
static char *error_of(const char *name, const char *value, const json_t *lines) {
    AUTO_BUF all = BUF_INIT;
    struct jw j = JW_INIT(&all);
    jw_object(&j);
    jw_key_str(&j, "ename", name ? name : "Error");
    jw_key_str(&j, "evalue", value ? value : "");
    jw_key(&j, "traceback");
    AUTO_FREE char *text = json_is_array(lines) ? json_dumps(lines, JSON_COMPACT) : NULL;
    if (text) {
        jw_raw(&j, text, strlen(text));
    } else {
        jw_array(&j);
        jw_str(&j, value ? value : "");
        jw_array_end(&j);
    }
    return strndup(all.data + 1, all.len - 1);
}

static void say_text(const struct jupyter_request *r, const char *stream, const char *text) {
    struct jupyter_out *m = jupyter_out(r->hub, "iopub", "stream", r->parent);
    struct jw j = JW_INIT(&m->content);
    jw_object(&j);
    jw_key_str(&j, "name", stream);
    jw_key_str(&j, "text", text);
    jw_object_end(&j);
    jupyter_publish(r->hub, m);
}

/* ---- how one ends ---- */

static void reply(struct jupyter_request *r, uint64_t count) {
    AUTO_BUF content = BUF_INIT;
    buf_addf(&content, "{\"status\":\"%s\",", r->error ? "error" : "ok");
    if (r->error)
        buf_addf(&content, "%s,", r->error);
    buf_addf(&content, "\"execution_count\":%llu,\"user_expressions\":%s,\"payload\":[",
             (unsigned long long)count, r->expressions ? r->expressions : "{}");
    buf_add(&content, r->payloads.data, r->payloads.len);
    buf_adds(&content, "]}");
    jupyter_reply(r, content.data);
}

/* Takes the one that ran off its place. */
static void over(struct jupyter_hub *h, uint64_t count) {
    struct jupyter_request *r = h->running;
    jupyter_state(h, r->parent, "idle");
    reply(r, count);
    h->running = NULL;
    h->play = NULL;
    if (r->error && is_cell(r) && !r->goes_on)
        jupyter_abort(h);
    jupyter_request_free(r);
    loop_defer(h->api->o.loop, &h->later);
}

/* It ends without having run, or without a result. */
static void set_failure(struct jupyter_request *r, const char *code, const char *why) {
    free(r->error);
    r->error = error_of(code, why, NULL);
    AUTO_BUF content = BUF_INIT;
    buf_addf(&content, "{%s}", r->error);
    jupyter_say(r->hub, "error", r->parent, content.data);
}

static void abort_one(struct jupyter_request *r) {
    jupyter_state(r->hub, r->parent, "busy");
    jupyter_state(r->hub, r->parent, "idle");
    jupyter_reply(r, ABORTED);
    jupyter_request_free(r);
}

/* What comms say is not lost with a cell. */
void jupyter_abort(struct jupyter_hub *h) {
    struct jupyter_request **at = &h->queue;
    while (*at) {
        struct jupyter_request *r = *at;
        if (!is_cell(r)) {
            at = &r->next;
            continue;
        }
        *at = r->next;
        h->nqueued--;
        h->queued_bytes -= size_of(r);
        abort_one(r);
    }
    h->queue_end = at;
}

/* ---- what it says ---- */

static void on_start(struct jupyter_request *r, const char *json, size_t len) {
    struct kernel *k = jupyter_kernel(r->hub);
    const json_t *code = json_object_get(r->body, "code");
    (void)json, (void)len;
    jupyter_state(r->hub, r->parent, "busy");
    if (r->silent || !is_cell(r) || !code || !k)
        return;
    struct jupyter_out *m = jupyter_out(r->hub, "iopub", "execute_input", r->parent);
    struct jw j = JW_INIT(&m->content);
    jw_object(&j);
    jw_key(&j, "code");
    jw_strn(&j, json_string_value(code), json_string_length(code));
    jw_key_uint(&j, "execution_count", kernel_count(k) + 1);
    jw_object_end(&j);
    jupyter_publish(r->hub, m);
}

static void say_printed(struct jupyter_hub *h) {
    if (h->printed.len == 0 || !h->running)
        return;
    struct jupyter_out *m = jupyter_out(h, "iopub", "stream", h->running->parent);
    buf_addf(&m->content, "{\"name\":\"%s\",\"text\":\"", h->printed_to);
    buf_add(&m->content, h->printed.data, h->printed.len);
    buf_adds(&m->content, "\"}");
    buf_clear(&h->printed);
    loop_timer_stop(h->api->o.loop, &h->say_later);
    jupyter_publish(h, m);
}

static void hold_if_full(struct jupyter_hub *h);

static void on_say_later(struct timer *t) {
    say_printed(t->arg);
    hold_if_full(t->arg);
}

/* Notebooks keep each message as an output of its own, so what is printed at about the same time
 * is one. {"data":"…"} has the text as JSON already. */
static void say_stream(struct jupyter_request *r, const char *name, const char *json, size_t len) {
    static const size_t before = sizeof "{\"data\":\"" - 1, after = sizeof "\"}" - 1;
    struct jupyter_hub *h = r->hub;
    if (h->printed_to != name)
        say_printed(h);
    h->printed_to = name;
    if (h->printed.len == 0)
        loop_timer(h->api->o.loop, &h->say_later, now_ns() + SAY_LATER_NS);
    buf_add(&h->printed, json + before, len - before - after);
    if (h->printed.len > PRINTED_MAX)
        say_printed(h);
}

static const char out[] = "stdout", err[] = "stderr";

static void on_stdout(struct jupyter_request *r, const char *json, size_t len) {
    say_stream(r, out, json, len);
}

static void on_stderr(struct jupyter_request *r, const char *json, size_t len) {
    say_stream(r, err, json, len);
}

/* These two are written as Jupyter wants them. */
static void on_result(struct jupyter_request *r, const char *json, size_t len) {
    (void)len;
    jupyter_say(r->hub, "execute_result", r->parent, json);
}

static void on_clear(struct jupyter_request *r, const char *json, size_t len) {
    (void)len;
    jupyter_say(r->hub, "clear_output", r->parent, json);
}

static void put(struct jw *j, const char *key, const json_t *object) {
    AUTO_FREE char *text = json_is_object(object) ? json_dumps(object, JSON_COMPACT) : NULL;
    jw_key(j, key);
    jw_raw(j, text ? text : "{}", text ? strlen(text) : 2);
}

static void on_display(struct jupyter_request *r, const char *json, size_t len) {
    json_auto_t *o = json_loadb(json, len, 0, NULL);
    bool update = json_is_true(json_object_get(o, "update"));
    const char *id = json_string_value(json_object_get(o, "display_id"));
    struct jupyter_out *m =
        jupyter_out(r->hub, "iopub", update ? "update_display_data" : "display_data", r->parent);
    struct jw j = JW_INIT(&m->content);
    jw_object(&j);
    put(&j, "data", json_object_get(o, "data"));
    put(&j, "metadata", json_object_get(o, "metadata"));
    jw_key(&j, "transient");
    jw_object(&j);
    if (id)
        jw_key_str(&j, "display_id", id);
    jw_object_end(&j);
    jw_object_end(&j);
    jupyter_publish(r->hub, m);
}

static void on_input(struct jupyter_request *r, const char *json, size_t len) {
    struct jupyter_out *m = jupyter_out(r->hub, "stdin", "input_request", r->parent);
    buf_add(&m->content, json, len);
    jupyter_answer(r, m);
}

static void on_error(struct jupyter_request *r, const char *json, size_t len) {
    json_auto_t *o = json_loadb(json, len, 0, NULL);
    const json_t *lines = json_object_get(o, "traceback"), *line;
    size_t i;
    free(r->error);
    r->error = error_of(json_string_value(json_object_get(o, "name")),
                        json_string_value(json_object_get(o, "value")), lines);
    if (is_cell(r)) {
        AUTO_BUF content = BUF_INIT;
        buf_addf(&content, "{%s}", r->error);
        jupyter_say(r->hub, "error", r->parent, content.data);
        return;
    }
    AUTO_BUF text = BUF_INIT; /* in a handler of a comm: there is no cell that it could end */
    json_array_foreach(lines, i, line) buf_addf(&text, "%s\n", json_string_value(line));
    say_text(r, "stderr", text.data);
}

static void add_buffers(struct jupyter_out *m, const json_t *list) {
    size_t n = json_array_size(list);
    if (n == 0)
        return;
    n = n > JUPYTER_BUFFERS_MAX ? JUPYTER_BUFFERS_MAX : n;
    m->buffers = xcalloc(n, sizeof *m->buffers);
    for (; m->nbuffers < n; m->nbuffers++) {
        const json_t *text = json_array_get(list, m->nbuffers);
        struct buf *to = &m->buffers[m->nbuffers];
        *to = (struct buf)BUF_INIT;
        if (json_is_string(text))
            paths_base64(json_string_value(text), json_string_length(text), to);
    }
}

/* SECURITY: the kernel chooses the type: only these are a comm's. */
static const char *comm_type(const json_t *type) {
    static const char *const known[] = {"comm_open", "comm_msg", "comm_close"};
    for (size_t i = 0; json_is_string(type) && i < sizeof known / sizeof *known; i++) {
        if (strcmp(json_string_value(type), known[i]) == 0)
            return known[i];
    }
    return NULL;
}

static void on_comm(struct jupyter_request *r, const char *json, size_t len) {
    json_auto_t *o = json_loadb(json, len, 0, NULL);
    const char *type = comm_type(json_object_get(o, "type"));
    if (!type)
        return;
    struct jupyter_out *m = jupyter_out(r->hub, "iopub", type, r->parent);
    AUTO_FREE char *content = json_dumps(json_object_get(o, "content"), JSON_COMPACT);
    AUTO_FREE char *metadata = json_dumps(json_object_get(o, "metadata"), JSON_COMPACT);
    buf_adds(&m->content, content ? content : "{}");
    buf_clear(&m->metadata);
    buf_adds(&m->metadata, metadata ? metadata : "{}");
    add_buffers(m, json_object_get(o, "buffers"));
    jupyter_publish(r->hub, m);
}

/* SECURITY: the kernel may say as many as it likes. */
static void on_payload(struct jupyter_request *r, const char *json, size_t len) {
    if (r->payloads.len + len > PAYLOADS_MAX)
        return;
    if (r->payloads.len)
        buf_addc(&r->payloads, ',');
    buf_add(&r->payloads, json, len);
}

static void on_expressions(struct jupyter_request *r, const char *json, size_t len) {
    free(r->expressions);
    r->expressions = strndup(json, len);
}

static void on_end(struct jupyter_request *r, const char *json, size_t len) {
    json_auto_t *o = json_loadb(json, len, 0, NULL);
    const char *status = json_string_value(json_object_get(o, "status"));
    bool cut = json_is_true(json_object_get(o, "stdout_truncated")) ||
               json_is_true(json_object_get(o, "stderr_truncated"));
    if (cut)
        say_text(r, "stderr",
                 "\ncloche: what was printed beyond the limit of a cell "
                 "(--live-output-bytes) was dropped\n");
    if (status && strcmp(status, "ok") != 0 && !r->error)
        set_failure(r, status, "the cell did not come to its end");
    over(r->hub, (uint64_t)json_integer_value(json_object_get(o, "execution_count")));
}

static void on_failed(struct jupyter_request *r, const char *json, size_t len) {
    json_auto_t *o = json_loadb(json, len, 0, NULL);
    const json_t *error = json_object_get(o, "error");
    set_failure(r, json_string_value(json_object_get(error, "code")),
                json_string_value(json_object_get(error, "message")));
    over(r->hub, 0);
}

static const struct {
    const char *type;
    void (*fn)(struct jupyter_request *r, const char *json, size_t len);
} events[] = {
    {"start", on_start},
    {"stdout", on_stdout},
    {"stderr", on_stderr},
    {"result", on_result},
    {"display", on_display},
    {"clear", on_clear},
    {"input", on_input},
    {"error", on_error},
    {"comm", on_comm},
    {"payload", on_payload},
    {"expressions", on_expressions},
    {"end", on_end},
    {"failed", on_failed},
};

void jupyter_unhold(struct jupyter_hub *h) {
    if (h->play)
        play_hold(h->play, false);
}

/* The kernel waits for the one who started it, if that reads slowly. */
static void hold_if_full(struct jupyter_hub *h) {
    const struct jupyter_client *c = h->running ? h->running->client : NULL;
    if (c && h->play && ws_backlog(c->ws) > HTTP_HIGH_WATER)
        play_hold(h->play, true);
}

static void on_event(struct follower *f, uint64_t number, const char *type, const char *json,
                     size_t len) {
    struct jupyter_hub *h = f->arg;
    (void)number;
    if (type && strncmp(type, "std", 3) != 0)
        say_printed(h);
    for (size_t i = 0; type && h->running && i < sizeof events / sizeof *events; i++) {
        if (strcmp(events[i].type, type) == 0) {
            events[i].fn(h->running, json, len);
            break;
        }
    }
    hold_if_full(h);
}

/* ---- the queue ---- */

static char *tag_of(const struct jupyter_request *r) {
    AUTO_BUF all = BUF_INIT;
    struct jw j = JW_INIT(&all);
    jw_object(&j);
    jw_key_str(&j, "session", r->session);
    jw_key_bool(&j, "is_cell", is_cell(r));
    jw_key_bool(&j, "goes_on", r->goes_on);
    jw_key(&j, "header");
    jw_raw(&j, r->parent, strlen(r->parent));
    jw_object_end(&j);
    return buf_take(&all);
}

static int start(struct jupyter_hub *h, struct jupyter_request *r, struct problem *p) {
    struct err e;
    struct live *l = live_find(h->api->o.engine, h->tenant, h->sandbox, &e);
    AUTO_FREE char *tag = tag_of(r);
    uint32_t seconds = h->api->config->http.jupyter_timeout_s, most = UINT32_MAX / 1000;
    const struct config_limits limits = {.timeout_ms = seconds && seconds < most ? seconds * 1000
                                                                                 : UINT32_MAX,
                                         .cpu_seconds = UINT32_MAX};
    const struct play_options o = {
        .stream = true, .op = r->op, .extra = r->extra, .tag = tag, .limits = &limits};
    if (!l) {
        *p = problem_of(&e);
        return -1;
    }
    return play_start(&r->who, l, r->body, &o, &h->play, p);
}

void jupyter_go_on(struct jupyter_hub *h) {
    struct jupyter_request *r = h->queue;
    struct problem p = {0};
    if (!r || h->running)
        return;
    h->queue = r->next;
    if (!h->queue)
        h->queue_end = &h->queue;
    h->nqueued--;
    h->queued_bytes -= size_of(r);
    r->next = NULL;
    h->running = r;
    if (start(h, r, &p) < 0) {
        call_refused(&r->who, &p);
        jupyter_state(h, r->parent, "busy");
        set_failure(r, p.code, p.message ? p.message : p.text);
        over(h, 0);
        return;
    }
    h->follower = (struct follower){.fn = on_event, .arg = h};
    record_follow(play_record(h->play), &h->follower);
}

void jupyter_run(struct jupyter_request *r) {
    struct jupyter_hub *h = r->hub;
    size_t size = size_of(r);
    if (h->nqueued >= MAX_QUEUE || (h->nqueued && h->queued_bytes + size > QUEUE_BYTES)) {
        jupyter_state(h, r->parent, "busy");
        set_failure(r, "queue_full", "too much waits in this kernel already; try again later");
        jupyter_state(h, r->parent, "idle");
        reply(r, 0);
        jupyter_request_free(r);
        return;
    }
    *h->queue_end = r;
    h->queue_end = &r->next;
    h->nqueued++;
    h->queued_bytes += size;
    jupyter_go_on(h);
}

static void free_list(struct jupyter_request *r) {
    while (r) {
        struct jupyter_request *next = r->next;
        jupyter_request_free(r);
        r = next;
    }
}

void jupyter_run_init(struct jupyter_hub *h) {
    h->queue_end = &h->queue;
    h->printed = (struct buf)BUF_INIT;
    h->say_later = (struct timer){.fn = on_say_later, .arg = h};
}

void jupyter_run_done(struct jupyter_hub *h) {
    record_unfollow(&h->follower);
    loop_timer_stop(h->api->o.loop, &h->say_later);
    buf_done(&h->printed);
    free_list(h->running);
    free_list(h->queue);
    free_list(h->asked);
    h->running = h->queue = h->asked = NULL;
}

/* ---- from an earlier server ---- */

void jupyter_inherit(struct api *a, struct live *l, struct cell *c) {
    struct err e;
    json_auto_t *tag = json_loads(cell_tag(c), 0, NULL);
    struct kernel *k = kernel_find(l, cell_kernel(c), &e);
    struct record *rec = records_find(a->records, live_tenant(l), cell_id(c));
    if (!k || !rec || !kernel_label(k) || !json_is_object(json_object_get(tag, "header")))
        return;
    struct jupyter_hub *h = jupyter_hub(a, k);
    struct jupyter_request *r = xcalloc(1, sizeof *r);
    const char *session = json_string_value(json_object_get(tag, "session"));
    r->hub = h;
    r->channel = "shell";
    r->reply = json_is_true(json_object_get(tag, "is_cell")) ? "execute_reply" : NULL;
    r->goes_on = json_is_true(json_object_get(tag, "goes_on"));
    r->parent = json_dumps(json_object_get(tag, "header"), JSON_COMPACT);
    r->payloads = (struct buf)BUF_INIT;
    snprintf(r->session, sizeof r->session, "%s", session ? session : "");
    h->running = r;
    h->keeps = true; /* for the one who was connected to that server */
    memcpy(h->kept_for, r->session, sizeof h->kept_for);
    h->follower = (struct follower){.fn = on_event, .arg = h};
    record_follow(rec, &h->follower);
}
