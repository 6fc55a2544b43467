/* See jupyter.h. What clients ask of a kernel, by the types of Jupyter's messages. Cells and comms
 * run in the kernel in their order (run.c); questions are answered as soon as it can; what
 * is about the kernel itself is answered here, also while it is busy.
 *
 * Every request is between a status busy and a status idle on iopub, and the reply is the last that
 * is heard of it. */

#include "api/dialects/jupyter/jupyter.h"

#include "base/base64.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/text.h"
#include "http/ws.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_HEADER   8192         /* bytes; it comes back with each message */
#define QUESTION_MAX (512u << 10) /* bytes: many may wait in memory for a busy kernel */

/* ---- without the kernel's word ---- */

static void answer(struct jupyter_client *c, const struct jupyter_in *m, const char *reply,
                   const char *content) {
    struct jupyter_request *r = jupyter_request(c, m, reply);
    jupyter_state(r->hub, r->parent, "busy"); /* may cut the client off: it has no hub then */
    jupyter_state(r->hub, r->parent, "idle");
    jupyter_reply(r, content);
    jupyter_request_free(r);
}

/* "Python 3.11.2 …" is what a profile that is ready says of itself. */
static void python_version(struct jupyter_hub *h, char *to, size_t cap) {
    struct err e;
    struct live *l = live_find(h->api->o.engine, h->tenant, h->sandbox, &e);
    const char *what = l ? live_python(l) : "";
    while (*what && !isdigit((unsigned char)*what))
        what++;
    snprintf(to, cap, "%.*s", (int)strspn(what, "0123456789."), what);
}

void jupyter_kernel_info(struct jupyter_hub *h, struct buf *to) {
    struct jw j = JW_INIT(to);
    char python[24], banner[80];
    python_version(h, python, sizeof python);
    snprintf(banner, sizeof banner, "Python %s in a sandbox of cloche " CLOCHE_VERSION, python);
    jw_object(&j);
    jw_key_str(&j, "status", "ok");
    jw_key_str(&j, "protocol_version", JUPYTER_VERSION);
    jw_key_str(&j, "implementation", "cloche");
    jw_key_str(&j, "implementation_version", CLOCHE_VERSION);
    jw_key_str(&j, "banner", banner);
    jw_key_bool(&j, "debugger", false);
    jw_key(&j, "help_links");
    jw_array(&j);
    jw_array_end(&j);
    jw_key(&j, "language_info");
    jw_object(&j);
    jw_key_str(&j, "name", "python");
    jw_key_str(&j, "version", python);
    jw_key_str(&j, "mimetype", "text/x-python");
    jw_key(&j, "codemirror_mode");
    jw_raw(&j, "{\"name\":\"ipython\",\"version\":3}", 30);
    jw_key_str(&j, "pygments_lexer", "ipython3");
    jw_key_str(&j, "nbconvert_exporter", "python");
    jw_key_str(&j, "file_extension", ".py");
    jw_object_end(&j);
    jw_object_end(&j);
}

static void do_kernel_info(struct jupyter_client *c, const struct jupyter_in *m) {
    AUTO_BUF json = BUF_INIT;
    jupyter_kernel_info(c->hub, &json);
    answer(c, m, "kernel_info_reply", json.data);
}

static void do_interrupt_request(struct jupyter_client *c, const struct jupyter_in *m) {
    struct kernel *k = jupyter_kernel(c->hub);
    if (k)
        kernel_interrupt(k);
    answer(c, m, "interrupt_reply", "{\"status\":\"ok\"}");
}

/* There are no ports to tell of, as all channels are this connection; clients want numbers. */
static void do_connect(struct jupyter_client *c, const struct jupyter_in *m) {
    answer(c, m, "connect_reply",
           "{\"status\":\"ok\",\"shell_port\":0,\"iopub_port\":0,\"stdin_port\":0,"
           "\"control_port\":0,\"hb_port\":0}");
}

static void on_restarted(void *arg, struct kernel *k, const struct err *why) {
    (void)arg, (void)k, (void)why; /* the hub hears of it by itself */
}

static void do_shutdown(struct jupyter_client *c, const struct jupyter_in *m) {
    struct jupyter_hub *h = c->hub;
    bool restart = json_is_true(json_object_get(m->content, "restart"));
    AUTO_BUF content = BUF_INIT;
    struct jw j = JW_INIT(&content);
    jw_object(&j);
    jw_key_str(&j, "status", "ok");
    jw_key_bool(&j, "restart", restart);
    jw_object_end(&j);
    answer(c, m, "shutdown_reply", content.data);
    if (!jupyter_kernel(h))
        return;
    if (restart) {
        jupyter_restart(h, on_restarted, NULL);
    } else {
        jupyter_say(h, "shutdown_reply", NULL, content.data);
        jupyter_end(h);
    }
}

/* The Debug Adapter Protocol's way to say no. */
static void do_debug(struct jupyter_client *c, const struct jupyter_in *m) {
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    const char *command = json_string_value(json_object_get(m->content, "command"));
    jw_object(&j);
    jw_key_str(&j, "status", "error");
    jw_key_str(&j, "ename", "NotImplementedError");
    jw_key_str(&j, "evalue", "this kernel has no debugger");
    jw_key(&j, "traceback");
    jw_array(&j);
    jw_array_end(&j);
    jw_key_str(&j, "type", "response");
    jw_key_int(&j, "request_seq", json_integer_value(json_object_get(m->content, "seq")));
    jw_key_int(&j, "seq", 0);
    jw_key_bool(&j, "success", false);
    jw_key_str(&j, "command", command ? command : "");
    jw_key_str(&j, "message", "this kernel has no debugger");
    jw_object_end(&j);
    answer(c, m, "debug_reply", json.data);
}

static void do_input_reply(struct jupyter_client *c, const struct jupyter_in *m) {
    struct kernel *k = jupyter_kernel(c->hub);
    struct err e;
    if (k) /* too late: as with Jupyter, nobody hears it */
        kernel_stdin(k, json_object_get(m->content, "value"), &e);
}

/* ---- what runs ---- */

static void put_copy(struct jw *j, const char *key, const json_t *value, const char *otherwise) {
    jw_key(j, key);
    jw_json(j, value, otherwise);
}

static bool truth(const json_t *o, const char *name, bool fallback) {
    const json_t *v = json_object_get(o, name);
    return json_is_boolean(v) ? json_is_true(v) : fallback;
}

static void do_execute_request(struct jupyter_client *c, const struct jupyter_in *m) {
    struct jupyter_request *r = jupyter_request(c, m, "execute_reply");
    json_t *code = json_object_get(m->content, "code");
    const json_t *wanted = json_object_get(m->content, "user_expressions");
    AUTO_BUF extra = BUF_INIT;
    struct jw j = JW_INIT(&extra);
    r->silent = truth(m->content, "silent", false);
    r->goes_on = !truth(m->content, "stop_on_error", true);
    r->body = json_pack("{s:s, s:s, s:b, s:b, s:b}", "kernel_id", c->hub->kernel, "on_disconnect",
                        "continue", "silent", r->silent, "store_history",
                        truth(m->content, "store_history", !r->silent), "allow_stdin",
                        truth(m->content, "allow_stdin", true));
    if (json_is_string(code))
        json_object_set(r->body, "code", code);
    else
        json_object_set_new(r->body, "code", json_string(""));
    jw_key_bool(&j, "notebook", true);
    if (json_object_size(wanted))
        put_copy(&j, "expressions", wanted, "{}");
    r->extra = buf_take(&extra);
    jupyter_run(r);
}

static void do_comm(struct jupyter_client *c, const struct jupyter_in *m) {
    struct jupyter_request *r = jupyter_request(c, m, NULL);
    AUTO_BUF extra = BUF_INIT;
    struct jw j = JW_INIT(&extra);
    r->silent = true;
    r->op = "comm";
    r->body = json_pack("{s:s, s:s, s:s, s:b, s:b}", "code", "", "kernel_id", c->hub->kernel,
                        "on_disconnect", "continue", "silent", true, "allow_stdin", false);
    jw_key_bool(&j, "notebook", true);
    jw_key_str(&j, "kind", m->type);
    put_copy(&j, "content", m->content, "{}");
    put_copy(&j, "metadata", json_is_object(m->metadata) ? m->metadata : NULL, "{}");
    jw_key(&j, "buffers");
    jw_array(&j);
    for (unsigned i = 0; i < m->nbuffers; i++) {
        AUTO_BUF text = BUF_INIT;
        base64_encode(&text, m->buffers[i].data, m->buffers[i].len);
        jw_escaped(&j, text.data, text.len);
    }
    jw_array_end(&j);
    r->extra = buf_take(&extra);
    jupyter_run(r);
}

/* ---- questions ---- */

/* A reply is the kernel's answer and more members; `otherwise` is that of one that cannot. */
struct question {
    const char *type, *op, *reply, *otherwise;
    void (*ask)(const json_t *content, struct jw *j);
    void (*tell)(const json_t *answer, struct jw *j);
};

static const struct question *find_question(const char *type);

static void take_out(struct jupyter_request *r) {
    LIST_REMOVE(&r->hub->asked, r, next);
}

static void messages_on_answer(void *arg, const char *json, size_t len, const struct err *why) {
    struct jupyter_request *r = arg;
    const struct question *q = find_question(r->op);
    AUTO_BUF content = BUF_INIT;
    json_auto_t *o = why ? NULL : json_loadb(json, len, 0, NULL);
    if (json_is_object(o)) {
        struct jw j = JW_INIT(&content);
        jw_object(&j);
        q->tell(o, &j);
        jw_object_end(&j);
    } else {
        buf_adds(&content, q->otherwise);
    }
    take_out(r);
    jupyter_state(r->hub, r->parent, "idle");
    jupyter_reply(r, content.data);
    jupyter_request_free(r);
}

static void do_question(struct jupyter_client *c, const struct jupyter_in *m) {
    const struct question *q = find_question(m->type);
    struct jupyter_request *r = jupyter_request(c, m, q->reply);
    struct kernel *k = jupyter_kernel(c->hub);
    AUTO_BUF members = BUF_INIT;
    struct jw j = JW_INIT(&members);
    struct err e;
    q->ask(m->content, &j);
    r->op = q->type;
    r->next = c->hub->asked;
    c->hub->asked = r;
    jupyter_state(c->hub, r->parent, "busy");
    err_user(&e, "no_such_kernel", "the kernel is gone, or the question too long");
    if (!k || members.len > QUESTION_MAX ||
        kernel_query(k, q->op, members.data, messages_on_answer, r, &e) < 0)
        messages_on_answer(r, NULL, 0, &e);
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

/* What JupyterLab shows beside each match. */
static void put_types(struct jw *j, const json_t *answer) {
    const json_t *matches = json_object_get(answer, "matches"), *match;
    const json_t *types = json_object_get(answer, "types");
    size_t i;
    jw_key(j, "metadata");
    jw_object(j);
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
    jw_object_end(j);
}

static void tell_complete(const json_t *answer, struct jw *j) {
    jw_key_str(j, "status", "ok");
    put_copy(j, "matches", json_object_get(answer, "matches"), "[]");
    jw_key_int(j, "cursor_start", json_integer_value(json_object_get(answer, "start")));
    jw_key_int(j, "cursor_end", json_integer_value(json_object_get(answer, "end")));
    put_types(j, answer);
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

/* ---- which ---- */

static const struct {
    const char *type;
    void (*fn)(struct jupyter_client *c, const struct jupyter_in *m);
} messages[] = {
    {"execute_request", do_execute_request},
    {"kernel_info_request", do_kernel_info},
    {"connect_request", do_connect},
    {"complete_request", do_question},
    {"inspect_request", do_question},
    {"is_complete_request", do_question},
    {"history_request", do_question},
    {"comm_info_request", do_question},
    {"comm_open", do_comm},
    {"comm_msg", do_comm},
    {"comm_close", do_comm},
    {"input_reply", do_input_reply},
    {"interrupt_request", do_interrupt_request},
    {"shutdown_request", do_shutdown},
    {"debug_request", do_debug},
};

void jupyter_complain(struct jupyter_client *c, const struct err *why) {
    struct jupyter_out *m = jupyter_out(c->hub, "iopub", "stream", NULL);
    struct jw j = JW_INIT(&m->content);
    char text[ERR_TEXT_MAX + 60];
    snprintf(text, sizeof text, "cloche: a message was not understood: %s\n", why->text);
    jw_object(&j);
    jw_key_str(&j, "name", "stderr");
    jw_key_str(&j, "text", text);
    jw_object_end(&j);
    struct jupyter_request to = {.hub = c->hub, .client = c};
    jupyter_answer(&to, m);
}

static size_t header_size(const json_t *header) {
    AUTO_FREE char *text = json_dumps(header, JSON_COMPACT);
    return text ? strlen(text) : SIZE_MAX;
}

void jupyter_hear(struct jupyter_client *c, const struct jupyter_in *m) {
    struct err e;
    c->hub->last_activity = jupyter_now();
    if (header_size(m->header) > MAX_HEADER) {
        err_user(&e, "bad_message", "its header has more than %d bytes", MAX_HEADER);
        jupyter_complain(c, &e);
        return;
    }
    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++) {
        if (strcmp(messages[i].type, m->type) == 0) {
            messages[i].fn(c, m);
            return;
        }
    }
    err_user(&e, "bad_message", "its msg_type is \"%.40s\", which no kernel knows", m->type);
    jupyter_complain(c, &e);
}
