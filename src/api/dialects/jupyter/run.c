/* See jupyter.h. What runs in a kernel for Jupyter's clients: cells, and messages of comms, one
 * after the other in the order in which they came. Each is an execution as those of the native API
 * are; its events become messages in events.c, all of which leave before its reply does. */

#include "api/dialects/jupyter/jupyter.h"

#include "api/jobs/cell_job.h"
#include "base/fd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_QUEUE      256
#define QUEUE_BYTES    (16u << 20)
#define NO_CPU_LIMIT_S 10000000u /* of what an engine's timers can count in */
#define ABORTED        "{\"status\":\"aborted\"}"

/* ---- requests ---- */

static struct buf move(struct buf *b) {
    struct buf it = *b;
    *b = (struct buf)BUF_INIT;
    return it;
}

struct jupyter_request *jupyter_request(struct jupyter_client *c, struct jupyter_in *m,
                                        const char *jupyter_run_reply) {
    struct jupyter_request *r = xcalloc(1, sizeof *r);
    r->hub = c->hub;
    r->client = c;
    memcpy(r->session, c->session, sizeof r->session);
    r->channel = strcmp(m->channel, "control") == 0 ? "control" : "shell";
    r->reply = jupyter_run_reply;
    r->parent = xstrdup(m->parent);
    r->extra = move(&m->members);
    r->shown = move(&m->shown);
    memcpy(r->sha256, m->sha256, sizeof r->sha256);
    r->payloads = (struct buf)BUF_INIT;
    r->who = c->call->who;
    return r;
}

void jupyter_request_free(struct jupyter_request *r) {
    if (!r)
        return;
    jupyter_untell(r);
    json_decref(r->body);
    buf_done(&r->payloads);
    buf_done(&r->extra);
    buf_done(&r->shown);
    free(r->parent);
    free(r->expressions);
    free(r->error);
    free(r);
}

static size_t size_of(const struct jupyter_request *r) {
    return sizeof *r + json_string_length(json_object_get(r->body, "code")) + r->extra.len +
           r->shown.len + strlen(r->parent);
}

/* ---- how one ends ---- */

static void jupyter_run_reply(struct jupyter_request *r, uint64_t count) {
    AUTO_BUF content = BUF_INIT;
    struct jw j = JW_INIT(&content);
    const char *expressions = r->expressions ? r->expressions : "{}";
    jw_object(&j);
    jw_key_str(&j, "status", r->error ? "error" : "ok");
    if (r->error)
        jw_members(&j, r->error, strlen(r->error));
    jw_key_uint(&j, "execution_count", count);
    jw_key(&j, "user_expressions");
    jw_raw(&j, expressions, strlen(expressions));
    jw_key(&j, "payload");
    jw_array(&j);
    if (r->payloads.len)
        jw_raw(&j, r->payloads.data, r->payloads.len);
    jw_array_end(&j);
    jw_object_end(&j);
    jupyter_reply(r, content.data);
}

/* Takes the one that ran off its place. */
void jupyter_over(struct jupyter_hub *h, uint64_t count) {
    struct jupyter_request *r = h->running;
    jupyter_state(h, r->parent, "idle");
    jupyter_run_reply(r, count);
    h->running = NULL;
    h->job = NULL;
    if (r->error && jupyter_is_cell(r) && !r->goes_on)
        jupyter_abort(h);
    jupyter_request_free(r);
    loop_defer(h->api->o.loop, &h->later);
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
        if (!jupyter_is_cell(r)) {
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

/* ---- the queue ---- */

static char *tag_of(const struct jupyter_request *r) {
    AUTO_BUF all = BUF_INIT;
    struct jw j = JW_INIT(&all);
    jw_object(&j);
    jw_key_str(&j, "session", r->session);
    jw_key_bool(&j, "is_cell", jupyter_is_cell(r));
    jw_key_bool(&j, "goes_on", r->goes_on);
    jw_key(&j, "header");
    jw_raw(&j, r->parent, strlen(r->parent));
    jw_object_end(&j);
    return buf_take(&all);
}

static int jupyter_run_start(struct jupyter_hub *h, struct jupyter_request *r, struct problem *p) {
    struct err e;
    struct live *l = live_find(h->api->o.engine, h->tenant, h->sandbox, &e);
    AUTO_FREE char *tag = tag_of(r);
    uint32_t seconds = h->api->config->jupyter.timeout_s, most = UINT32_MAX / 1000;
    const struct limits limits = {.timeout_ms =
                                      seconds && seconds < most ? seconds * 1000 : UINT32_MAX,
                                  .cpu_seconds = NO_CPU_LIMIT_S};
    const struct cell_job_options o = {.live = l,
                                       .body = r->body,
                                       .stream = true,
                                       .op = r->op,
                                       .extra = &r->extra,
                                       .sha256 = r->sha256,
                                       .tag = tag,
                                       .limits = &limits};
    if (!l) {
        *p = problem_of(&e);
        return -1;
    }
    return cell_job_start(&r->who, &o, &h->job, p);
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
    if (jupyter_run_start(h, r, &p) < 0) {
        call_refused(r->who.api, &p);
        jupyter_state(h, r->parent, "busy");
        jupyter_fail(r, p.code, problem_message(&p));
        jupyter_over(h, 0);
        return;
    }
    jupyter_follow(h, cell_job_record(h->job));
}

void jupyter_run(struct jupyter_request *r) {
    struct jupyter_hub *h = r->hub;
    size_t size = size_of(r);
    if (h->nqueued >= MAX_QUEUE || (h->nqueued && h->queued_bytes + size > QUEUE_BYTES)) {
        jupyter_state(h, r->parent, "busy");
        jupyter_fail(r, "queue_full", "too much waits in this kernel already; try again later");
        jupyter_state(h, r->parent, "idle");
        jupyter_run_reply(r, 0);
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

void jupyter_run_done(struct jupyter_hub *h) {
    jupyter_events_done(h);
    free_list(h->running);
    free_list(h->queue);
    free_list(h->asked);
    h->running = h->queue = h->asked = NULL;
}

/* ---- from an earlier server ---- */

bool jupyter_inherit(struct api *a, struct live *l, struct cell *c, struct cell_job *job) {
    struct err e;
    json_auto_t *tag = json_loads(cell_tag(c), 0, NULL);
    struct kernel *k = kernel_find(l, cell_kernel(c), &e);
    if (!k || !kernel_label(k) || !json_is_object(json_object_get(tag, "header")))
        return false;
    struct jupyter_hub *h = jupyter_hub(a, k);
    struct jupyter_request *r = xcalloc(1, sizeof *r);
    const char *session = json_string_value(json_object_get(tag, "session"));
    r->hub = h;
    r->channel = "shell";
    r->reply = json_is_true(json_object_get(tag, "is_cell")) ? "execute_reply" : NULL;
    r->goes_on = json_is_true(json_object_get(tag, "goes_on"));
    r->parent = json_dumps(json_object_get(tag, "header"), JSON_COMPACT);
    r->payloads = r->extra = r->shown = (struct buf)BUF_INIT;
    snprintf(r->session, sizeof r->session, "%s", session ? session : "");
    h->running = r;
    h->job = job;    /* SECURITY: it is held when much is on its way */
    h->keeps = true; /* for the one who was connected to that server */
    memcpy(h->kept_for, r->session, sizeof h->kept_for);
    jupyter_follow(h, cell_job_record(job));
    return true;
}
