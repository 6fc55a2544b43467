/* See jupyter.h. Questions of clients that the kernel answers beside its cells: completions, what a
 * name is, its history, its comms. Long ones are written beside the loop, when the message is
 * prepared (messages.c), and long answers are read there.
 *
 * SECURITY: an answer is from a process that runs hostile code. What would make a reply too long is
 * left out, or the whole answer is. */

#include "api/dialects/jupyter/jupyter.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/text.h"
#include "loop/crew.h"

#include <stdlib.h>
#include <string.h>

#define QUESTION_MAX (512u << 10) /* bytes: many may wait in memory for a busy kernel */
#define ANSWER_MAX   (4u << 20)   /* bytes; a longer one is none */
#define TYPES_MAX    10000u       /* matches whose types are told */
#define SHORT        4096         /* bytes of an answer that is read in the loop */

/* A reply is the kernel's answer and more members; `otherwise` is that of one that cannot. */
struct question {
    const char *type, *op, *reply, *otherwise;
    void (*ask)(const json_t *content, struct jw *j);
    void (*tell)(const json_t *answer, struct jw *j);
};

/* ---- what is asked, and told ---- */

static bool truth(const json_t *o, const char *name, bool fallback) {
    const json_t *v = json_object_get(o, name);
    return json_is_boolean(v) ? json_is_true(v) : fallback;
}

static void put_copy(struct jw *j, const char *key, const json_t *value, const char *otherwise) {
    jw_key(j, key);
    jw_json(j, value, otherwise);
}

static void put_code(const json_t *content, struct jw *j) {
    const json_t *code = json_object_get(content, "code");
    jw_key(j, "code");
    jw_strn(j, json_is_string(code) ? json_string_value(code) : "", json_string_length(code));
}

static void ask_at_cursor(const json_t *content, struct jw *j) {
    const json_t *at = json_object_get(content, "cursor_pos");
    const json_t *code = json_object_get(content, "code");
    json_int_t all = (json_int_t)text_chars(json_string_value(code), json_string_length(code));
    json_int_t cursor = json_is_integer(at) ? json_integer_value(at) : all;
    const json_t *detail = json_object_get(content, "detail_level");
    put_code(content, j);
    jw_key_int(j, "cursor", cursor < 0 || cursor > all ? all : cursor);
    jw_key_int(j, "detail", json_integer_value(detail) > 0);
}

/* What JupyterLab shows beside each match: of all, or of none. */
static void put_types(struct jw *j, const json_t *answer) {
    const json_t *matches = json_object_get(answer, "matches"), *match;
    const json_t *types = json_object_get(answer, "types");
    size_t i;
    if (json_array_size(matches) > TYPES_MAX)
        return;
    jw_key(j, "_jupyter_types_experimental");
    jw_array(j);
    json_array_foreach(matches, i, match) {
        const char *type = json_string_value(json_array_get(types, i));
        jw_object(j);
        jw_key_int(j, "start", json_integer_value(json_object_get(answer, "start")));
        jw_key_int(j, "end", json_integer_value(json_object_get(answer, "end")));
        jw_key_str(j, "text", json_string_value(match));
        jw_key_str(j, "type", type && *type ? type : "<unknown>");
        jw_object_end(j);
    }
    jw_array_end(j);
}

static void tell_complete(const json_t *answer, struct jw *j) {
    jw_key_str(j, "status", "ok");
    put_copy(j, "matches", json_object_get(answer, "matches"), "[]");
    jw_key_int(j, "cursor_start", json_integer_value(json_object_get(answer, "start")));
    jw_key_int(j, "cursor_end", json_integer_value(json_object_get(answer, "end")));
    jw_key(j, "metadata");
    jw_object(j);
    put_types(j, answer);
    jw_object_end(j);
}

static void tell_inspect(const json_t *answer, struct jw *j) {
    jw_key_str(j, "status", "ok");
    jw_key_bool(j, "found", json_is_true(json_object_get(answer, "found")));
    put_copy(j, "data", json_object_get(answer, "data"), "{}");
    jw_key(j, "metadata");
    jw_raw(j, "{}", 2);
}

static void tell_is_complete(const json_t *answer, struct jw *j) {
    const char *status = json_string_value(json_object_get(answer, "status"));
    const char *indent = json_string_value(json_object_get(answer, "indent"));
    jw_key_str(j, "status", status ? status : "unknown");
    if (indent)
        jw_key_str(j, "indent", indent);
}

static void ask_history(const json_t *content, struct jw *j) {
    static const char *const numbers[] = {"n", "session", "start", "stop"};
    static const char *const truths[] = {"raw", "output", "unique"};
    const char *kind = json_string_value(json_object_get(content, "hist_access_type"));
    const char *pattern = json_string_value(json_object_get(content, "pattern"));
    jw_key_str(j, "kind", kind ? kind : "tail");
    jw_key_str(j, "pattern", pattern);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const json_t *v = json_object_get(content, numbers[i]);
        if (json_is_integer(v))
            jw_key_int(j, numbers[i], json_integer_value(v));
    }
    for (size_t i = 0; i < sizeof truths / sizeof *truths; i++)
        jw_key_bool(j, truths[i], truth(content, truths[i], i == 0));
}

static void tell_history(const json_t *answer, struct jw *j) {
    jw_key_str(j, "status", "ok");
    put_copy(j, "history", json_object_get(answer, "history"), "[]");
}

static void ask_comms(const json_t *content, struct jw *j) {
    const char *target = json_string_value(json_object_get(content, "target_name"));
    jw_key_str(j, "target", target && *target ? target : NULL);
}

static void tell_comms(const json_t *answer, struct jw *j) {
    jw_key_str(j, "status", "ok");
    put_copy(j, "comms", json_object_get(answer, "comms"), "{}");
}

static const struct question questions[] = {
    {"complete_request", "complete", "complete_reply",
     "{\"status\":\"ok\",\"matches\":[],\"cursor_start\":0,\"cursor_end\":0,\"metadata\":{}}",
     ask_at_cursor, tell_complete},
    {"inspect_request", "inspect", "inspect_reply",
     "{\"status\":\"ok\",\"found\":false,\"data\":{},\"metadata\":{}}", ask_at_cursor,
     tell_inspect},
    {"is_complete_request", "is_complete", "is_complete_reply", "{\"status\":\"unknown\"}",
     put_code, tell_is_complete},
    {"history_request", "history", "history_reply", "{\"status\":\"ok\",\"history\":[]}",
     ask_history, tell_history},
    {"comm_info_request", "comms", "comm_info_reply", "{\"status\":\"ok\",\"comms\":{}}", ask_comms,
     tell_comms},
};

static const struct question *find_question(const char *type) {
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++) {
        if (strcmp(questions[i].type, type) == 0)
            return &questions[i];
    }
    return NULL;
}

/* ---- answers ---- */

/* One that is on its way to the client. */
struct jupyter_telling {
    struct work work;
    struct jupyter_request *request; /* borrowed; NULL: nobody waits any more */
    const struct question *of;
    struct buf json, content;
    uint64_t cpu_ns;
};

static void telling_free(struct jupyter_telling *t) {
    buf_done(&t->json);
    buf_done(&t->content);
    free(t);
}

/* The content of the reply; may be called beside the loop. */
static void read_answer(const struct question *q, const char *json, size_t len, struct buf *to) {
    json_auto_t *o = json && len <= ANSWER_MAX ? json_loadb(json, len, 0, NULL) : NULL;
    struct jw j = JW_INIT(to);
    if (json_is_object(o)) {
        jw_object(&j);
        q->tell(o, &j);
        jw_object_end(&j);
    }
    if (to->len == 0 || to->len > ANSWER_MAX) {
        buf_done(to);
        *to = (struct buf)BUF_INIT;
        buf_adds(to, q->otherwise);
    }
}

static bool jupyter_telling_slice(struct work *w) {
    struct jupyter_telling *t = w->arg;
    uint64_t began = thread_cpu_ns();
    read_answer(t->of, t->json.data, t->json.len, &t->content);
    buf_done(&t->json);
    t->json = (struct buf)BUF_INIT;
    t->cpu_ns = thread_cpu_ns() - began;
    return false;
}

static void reply_to(struct jupyter_request *r, struct buf *content) {
    struct jupyter_out *m = jupyter_out(r->hub, r->channel, r->reply, r->parent);
    LIST_REMOVE(&r->hub->asked, r, next);
    buf_done(&m->content);
    m->content = *content;
    *content = (struct buf)BUF_INIT;
    jupyter_state(r->hub, r->parent, "idle");
    jupyter_answer(r, m);
    jupyter_request_free(r);
}

static void jupyter_telling_done(struct work *w) {
    struct jupyter_telling *t = w->arg;
    struct jupyter_request *r = t->request;
    if (r) {
        r->telling = NULL;
        jupyter_heard(r->hub, t->cpu_ns);
        reply_to(r, &t->content);
    }
    telling_free(t);
}

void jupyter_untell(struct jupyter_request *r) {
    if (r->telling)
        r->telling->request = NULL;
    r->telling = NULL;
}

static void tell_beside(struct jupyter_request *r, const struct question *q, const char *json,
                        size_t len) {
    struct jupyter_telling *t = xmalloc(sizeof *t);
    *t = (struct jupyter_telling){.request = r, .of = q, .json = BUF_INIT, .content = BUF_INIT};
    t->work = (struct work){.slice = jupyter_telling_slice,
                            .done = jupyter_telling_done,
                            .arg = t,
                            .owner = crew_owner(r->hub->tenant),
                            .is_long = len > CREW_LONG / 8}; /* of many values */
    buf_add(&t->json, json, len);
    r->telling = t;
    crew_add(r->hub->api->o.engine->crew, &t->work);
}

static void questions_on_answer(void *arg, const char *json, size_t len, const struct err *why) {
    struct jupyter_request *r = arg;
    const struct question *q = find_question(r->op);
    if (!why && len > SHORT && len <= ANSWER_MAX) {
        tell_beside(r, q, json, len);
        return;
    }
    AUTO_BUF content = BUF_INIT;
    read_answer(q, why ? NULL : json, len, &content);
    reply_to(r, &content);
}

/* ---- questions ---- */

void jupyter_prepare_question(struct jupyter_in *m) {
    struct jw j = JW_INIT(&m->members);
    find_question(m->type)->ask(m->content, &j);
    m->is_too_long = m->members.len > QUESTION_MAX;
}

void jupyter_ask(struct jupyter_client *c, struct jupyter_in *m) {
    const struct question *q = find_question(m->type);
    struct jupyter_request *r = jupyter_request(c, m, q->reply);
    struct kernel *k = jupyter_kernel(c->hub);
    struct err e;
    r->op = q->type;
    r->next = c->hub->asked;
    c->hub->asked = r;
    jupyter_state(c->hub, r->parent, "busy");
    err_user(&e, "no_such_kernel", "the kernel is gone, or the question too long");
    if (!k || m->is_too_long ||
        kernel_query(k, q->op, r->extra.data, questions_on_answer, r, &e) < 0)
        questions_on_answer(r, NULL, 0, &e);
}
