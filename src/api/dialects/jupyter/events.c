/* See jupyter.h. What an execution says becomes messages of Jupyter's, for all clients of its
 * kernel but the questions of input(), which are for the one who started it. */

#include "api/dialects/jupyter/jupyter.h"

#include "api/jobs/cell_job.h"
#include "base/base64.h"
#include "base/fd.h"
#include "base/json_value.h"
#include "http/ws.h"

#include <stdlib.h>
#include <string.h>

#define SAY_LATER_MS 50
#define PRINTED_MAX  (1u << 20) /* bytes of one message */
#define PAYLOADS_MAX (16u << 20)

/* ---- errors ---- */

/* An error that did not come from the kernel. */
static char *own_error(const char *name, const char *value) {
    AUTO_BUF all = BUF_INIT;
    struct jw j = JW_INIT(&all);
    jw_object(&j);
    jw_key_str(&j, "ename", name ? name : "Error");
    jw_key_str(&j, "evalue", value ? value : "");
    jw_key(&j, "traceback");
    jw_array(&j);
    jw_str(&j, value ? value : "");
    jw_array_end(&j);
    jw_object_end(&j);
    return buf_take(&all);
}

static void put_span(struct jw *j, const char *key, struct json_span value, const char *otherwise) {
    jw_key(j, key);
    if (value.at)
        jw_raw(j, value.at, value.len);
    else
        jw_raw(j, otherwise, strlen(otherwise));
}

/* The error in an event, where its members have other names and may be long. */
static char *error_of(const char *json, size_t len) {
    AUTO_BUF all = BUF_INIT;
    struct jw j = JW_INIT(&all);
    jw_object(&j);
    put_span(&j, "ename", json_member(json, len, "name"), "\"Error\"");
    put_span(&j, "evalue", json_member(json, len, "value"), "\"\"");
    put_span(&j, "traceback", json_member(json, len, "traceback"), "[]");
    jw_object_end(&j);
    return buf_take(&all);
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

void jupyter_fail(struct jupyter_request *r, const char *code, const char *why) {
    free(r->error);
    r->error = own_error(code, why);
    jupyter_say(r->hub, "error", r->parent, r->error);
}

/* ---- what it says ---- */

static void notebook_on_start(struct jupyter_request *r, const char *json, size_t len) {
    struct kernel *k = jupyter_kernel(r->hub);
    (void)json, (void)len;
    jupyter_state(r->hub, r->parent, "busy");
    if (r->silent || !jupyter_is_cell(r) || !r->body ||
        !k) /* a request that an earlier server had comes without its body */
        return;
    struct jupyter_out *m = jupyter_out(r->hub, "iopub", "execute_input", r->parent);
    struct jw j = JW_INIT(&m->content);
    jw_object(&j);
    jw_key(&j, "code");
    jw_escaped(&j, r->shown.data, r->shown.len);
    buf_done(&r->shown);
    r->shown = (struct buf)BUF_INIT;
    jw_key_uint(&j, "execution_count", kernel_count(k) + 1);
    jw_object_end(&j);
    jupyter_publish(r->hub, m);
}

static void say_printed(struct jupyter_hub *h) {
    if (h->printed.len == 0 || !h->running)
        return;
    struct jupyter_out *m = jupyter_out(h, "iopub", "stream", h->running->parent);
    struct jw j = JW_INIT(&m->content);
    jw_object(&j);
    jw_key_str(&j, "name", h->printed_to);
    jw_key(&j, "text");
    jw_escaped(&j, h->printed.data, h->printed.len);
    jw_object_end(&j);
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
        loop_timer_in_ms(h->api->o.loop, &h->say_later, SAY_LATER_MS);
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

/* The events of these two are content as Jupyter wants it. */
static void events_on_result(struct jupyter_request *r, const char *json, size_t len) {
    (void)len;
    jupyter_say(r->hub, "execute_result", r->parent, json);
}

static void notebook_on_clear(struct jupyter_request *r, const char *json, size_t len) {
    (void)len;
    jupyter_say(r->hub, "clear_output", r->parent, json);
}

/* The event ends with `,"display_id":…,"update":…}`, which Jupyter has in another place. What comes
 * before may be long, so only the end is parsed. No string can hold this key, since its quotes
 * would be escaped there, and it is the last of its kind in the event. */
static void on_display(struct jupyter_request *r, const char *json, size_t len) {
    static const char key[] = ",\"display_id\":";
    const size_t n = sizeof key - 1;
    size_t end = len;
    while (end > n && memcmp(json + end - n, key, n) != 0)
        end--;
    AUTO_BUF last = BUF_INIT;
    if (end <= n)
        return;
    struct jw tail = JW_INIT(&last);
    jw_object(&tail);
    jw_key(&tail, "display_id");
    jw_raw(&tail, json + end, len - end); /* the value, and whatever else the object has */
    json_auto_t *o = json_loadb(last.data, last.len, 0, NULL);
    if (!o)
        return;
    bool update = json_is_true(json_object_get(o, "update"));
    const char *id = json_string_value(json_object_get(o, "display_id"));
    struct jupyter_out *m =
        jupyter_out(r->hub, "iopub", update ? "update_display_data" : "display_data", r->parent);
    buf_add(&m->content, json, end - n);
    struct jw j = {.to = &m->content, .comma = true};
    jw_key(&j, "transient");
    jw_object(&j);
    if (id)
        jw_key_str(&j, "display_id", id);
    jw_object_end(&j);
    jw_object_end(&j);
    jupyter_publish(r->hub, m);
}

static void notebook_on_input(struct jupyter_request *r, const char *json, size_t len) {
    struct jupyter_out *m = jupyter_out(r->hub, "stdin", "input_request", r->parent);
    buf_add(&m->content, json, len);
    jupyter_answer(r, m);
}

/* The lines of a traceback as the inside of one string, still as JSON. */
static void add_lines(struct buf *to, struct json_span lines) {
    const char *at = lines.at, *end = at ? at + lines.len : NULL;
    while (at < end && (*at == '[' || *at == ',')) {
        struct json_span line = json_first(at + 1, (size_t)(end - at - 1));
        if (line.len < 2 || *line.at != '"')
            break;
        buf_add(to, line.at + 1, line.len - 2);
        buf_adds(to, "\\n");
        at = line.at + line.len;
    }
}

/* In a handler of a comm: there is no cell that it could end. */
static void say_error(const struct jupyter_request *r, struct json_span lines) {
    struct jupyter_out *m = jupyter_out(r->hub, "iopub", "stream", r->parent);
    AUTO_BUF text = BUF_INIT;
    struct jw j = JW_INIT(&m->content);
    add_lines(&text, lines);
    jw_object(&j);
    jw_key_str(&j, "name", "stderr");
    jw_key(&j, "text");
    jw_escaped(&j, text.data, text.len);
    jw_object_end(&j);
    jupyter_publish(r->hub, m);
}

static void notebook_on_error(struct jupyter_request *r, const char *json, size_t len) {
    free(r->error);
    r->error = error_of(json, len);
    if (jupyter_is_cell(r))
        jupyter_say(r->hub, "error", r->parent, r->error);
    else
        say_error(r, json_member(json, len, "traceback"));
}

/* A list of strings of base64. */
static void add_buffers(struct jupyter_out *m, const char *list, size_t len) {
    const char *end = list + len, *at = list;
    while (m->nbuffers < JUPYTER_BUFFERS_MAX && (at = memchr(at, '"', (size_t)(end - at)))) {
        const char *close = memchr(at + 1, '"', (size_t)(end - at - 1));
        if (!close)
            break;
        m->buffers = xrealloc(m->buffers, (m->nbuffers + 1) * sizeof *m->buffers);
        struct buf *to = &m->buffers[m->nbuffers++];
        *to = (struct buf)BUF_INIT;
        (void)base64_decode(to, at + 1, (size_t)(close - at - 1));
        at = close + 1;
    }
}

/* SECURITY: the kernel chooses the type: only these are a comm's. */
static const char *comm_type(const char *json, size_t len) {
    static const char *const known[] = {"comm_open", "comm_msg", "comm_close"};
    struct json_span type = json_member(json, len, "type");
    for (size_t i = 0; type.at && i < sizeof known / sizeof *known; i++) {
        size_t n = strlen(known[i]);
        if (type.len == n + 2 && memcmp(type.at + 1, known[i], n) == 0)
            return known[i];
    }
    return NULL;
}

static void add_span(struct buf *to, struct json_span object) {
    buf_clear(to);
    if (object.at && *object.at == '{')
        buf_add(to, object.at, object.len);
    else
        buf_adds(to, "{}");
}

/* The event may be long: its parts are taken as they are. */
static void on_comm(struct jupyter_request *r, const char *json, size_t len) {
    const char *type = comm_type(json, len);
    if (!type)
        return;
    struct jupyter_out *m = jupyter_out(r->hub, "iopub", type, r->parent);
    struct json_span buffers = json_member(json, len, "buffers");
    add_span(&m->content, json_member(json, len, "content"));
    add_span(&m->metadata, json_member(json, len, "metadata"));
    if (buffers.at && *buffers.at == '[')
        add_buffers(m, buffers.at, buffers.len);
    jupyter_publish(r->hub, m);
}

/* SECURITY: the kernel may send as many as it likes, so what is kept of them is bounded. */
static void on_payload(struct jupyter_request *r, const char *json, size_t len) {
    if (r->payloads.len + len > PAYLOADS_MAX)
        return;
    struct jw j = {.to = &r->payloads, .comma = r->payloads.len > 0};
    jw_raw(&j, json, len);
}

static void on_expressions(struct jupyter_request *r, const char *json, size_t len) {
    free(r->expressions);
    r->expressions = xstrndup(json, len);
}

/* Its JSON has the error and the names of all files that the cell made. */
static void notebook_on_end(struct jupyter_request *r, const char *json, size_t len) {
    const struct cell *c = cell_job_ended(r->hub->job);
    const struct outcome *o = cell_outcome(c);
    (void)json, (void)len;
    if (o->cut[0] || o->cut[1])
        say_text(r, "stderr",
                 "\ncloche: what was printed beyond the limit of a cell "
                 "(--live-output-bytes) was dropped\n");
    if (o->status != OUTCOME_OK && !r->error)
        jupyter_fail(r, outcome_word(o->status), "the cell did not come to its end");
    jupyter_over(r->hub, cell_execution_count(c));
}

static void on_failed(struct jupyter_request *r, const char *json, size_t len) {
    json_auto_t *o = json_loadb(json, len, 0, NULL);
    const json_t *error = json_object_get(o, "error");
    jupyter_fail(r, json_string_value(json_object_get(error, "code")),
                 json_string_value(json_object_get(error, "message")));
    jupyter_over(r->hub, 0);
}

static const struct {
    const char *type;
    void (*fn)(struct jupyter_request *r, const char *json, size_t len);
} events[] = {
    {"start", notebook_on_start}, {"stdout", on_stdout},           {"stderr", on_stderr},
    {"result", events_on_result}, {"display", on_display},         {"clear", notebook_on_clear},
    {"input", notebook_on_input}, {"error", notebook_on_error},    {"comm", on_comm},
    {"payload", on_payload},      {"expressions", on_expressions}, {"end", notebook_on_end},
    {"failed", on_failed},
};

void jupyter_unhold(struct jupyter_hub *h) {
    if (h->job)
        cell_job_hold(h->job, false);
}

/* The kernel waits for the one who started it, if that reads slowly, and for what is on its way. */
static void hold_if_full(struct jupyter_hub *h) {
    const struct jupyter_client *c = h->running ? h->running->client : NULL;
    bool is_slow = c && ws_backlog(c->ws) > HTTP_HIGH_WATER;
    if (h->job && (is_slow || jupyter_post_is_full(h)))
        cell_job_hold(h->job, true);
}

static void notebook_on_event(struct follower *f, uint64_t number, const char *type,
                              const char *json, size_t len) {
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

void jupyter_events_init(struct jupyter_hub *h) {
    h->printed = (struct buf)BUF_INIT;
    h->say_later = (struct timer){.fn = on_say_later, .arg = h};
}

void jupyter_follow(struct jupyter_hub *h, struct record *rec) {
    h->follower = (struct follower){.is_first = true, .fn = notebook_on_event, .arg = h};
    record_follow(rec, &h->follower);
}

void jupyter_events_done(struct jupyter_hub *h) {
    record_unfollow(&h->follower);
    loop_timer_stop(h->api->o.loop, &h->say_later);
    buf_done(&h->printed);
}
