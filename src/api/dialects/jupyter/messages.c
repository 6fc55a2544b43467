/* See jupyter.h. What clients ask of a kernel, by the types of Jupyter's messages. Cells and comms
 * run in the kernel in their order (run.c); questions (questions.c) are answered as soon as it can;
 * what is about the kernel itself is answered here, also while it is busy.
 *
 * SECURITY: a message may be long. All that takes long with it is done when it is prepared, beside
 * the loop; what comes then moves what was made, and looks up members.
 *
 * Every request is between a status busy and a status idle on iopub, and the reply is the last that
 * is heard of it. */

#include "api/dialects/jupyter/jupyter.h"

#include "base/base64.h"
#include "base/fd.h"
#include "http/ws.h"
#include "keys/keys.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_HEADER  8192 /* bytes; it comes back with each message */
#define MAX_COMMAND 256  /* bytes of a debugger's command, which comes back, too */

/* ---- without the kernel's word ---- */

static void answer(struct jupyter_client *c, struct jupyter_in *m, const char *reply,
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

static void do_kernel_info(struct jupyter_client *c, struct jupyter_in *m) {
    AUTO_BUF json = BUF_INIT;
    jupyter_kernel_info(c->hub, &json);
    answer(c, m, "kernel_info_reply", json.data);
}

static void do_interrupt_request(struct jupyter_client *c, struct jupyter_in *m) {
    struct kernel *k = jupyter_kernel(c->hub);
    if (k)
        kernel_interrupt(k);
    answer(c, m, "interrupt_reply", "{\"status\":\"ok\"}");
}

/* There are no ports to tell of, as all channels are this connection; clients want numbers. */
static void do_connect(struct jupyter_client *c, struct jupyter_in *m) {
    answer(c, m, "connect_reply",
           "{\"status\":\"ok\",\"shell_port\":0,\"iopub_port\":0,\"stdin_port\":0,"
           "\"control_port\":0,\"hb_port\":0}");
}

static void on_restarted(void *arg, struct kernel *k, const struct err *why) {
    (void)arg, (void)k, (void)why; /* the hub hears of it by itself */
}

static void do_shutdown(struct jupyter_client *c, struct jupyter_in *m) {
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
static void do_debug(struct jupyter_client *c, struct jupyter_in *m) {
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    const json_t *command = json_object_get(m->content, "command");
    bool is_short = json_is_string(command) && json_string_length(command) <= MAX_COMMAND;
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
    jw_key(&j, "command");
    jw_strn(&j, is_short ? json_string_value(command) : "",
            is_short ? json_string_length(command) : 0);
    jw_key_str(&j, "message", "this kernel has no debugger");
    jw_object_end(&j);
    answer(c, m, "debug_reply", json.data);
}

static void do_input_reply(struct jupyter_client *c, struct jupyter_in *m) {
    struct kernel *k = jupyter_kernel(c->hub);
    struct err e;
    if (k) /* too late: as with Jupyter, nobody hears it */
        kernel_stdin(k, json_object_get(m->content, "value"), &e);
}

/* ---- what runs ---- */

static void put_copy(struct jw *j, const char *key, const json_t *value) {
    jw_key(j, key);
    jw_json(j, value, "{}");
}

static bool truth(const json_t *o, const char *name, bool fallback) {
    const json_t *v = json_object_get(o, name);
    return json_is_boolean(v) ? json_is_true(v) : fallback;
}

static void prepare_cell(struct jupyter_in *m) {
    const json_t *code = json_object_get(m->content, "code");
    const json_t *wanted = json_object_get(m->content, "user_expressions");
    const char *text = json_is_string(code) ? json_string_value(code) : "";
    size_t len = json_string_length(code);
    struct jw j = JW_INIT(&m->members);
    jw_key_bool(&j, "notebook", true);
    if (json_object_size(wanted))
        put_copy(&j, "expressions", wanted);
    if (!truth(m->content, "silent", false))
        json_escape(&m->shown, text, len);
    keys_sha256(text, len, m->sha256);
}

static void do_execute_request(struct jupyter_client *c, struct jupyter_in *m) {
    struct jupyter_request *r = jupyter_request(c, m, "execute_reply");
    json_t *code = json_object_get(m->content, "code");
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
    jupyter_run(r);
}

static void prepare_comm(struct jupyter_in *m) {
    struct jw j = JW_INIT(&m->members);
    jw_key_bool(&j, "notebook", true);
    jw_key_str(&j, "kind", m->type);
    put_copy(&j, "content", m->content);
    put_copy(&j, "metadata", json_is_object(m->metadata) ? m->metadata : NULL);
    jw_key(&j, "buffers");
    jw_array(&j);
    for (unsigned i = 0; i < m->nbuffers; i++) {
        AUTO_BUF text = BUF_INIT;
        base64_encode(&text, m->buffers[i].data, m->buffers[i].len);
        jw_escaped(&j, text.data, text.len);
    }
    jw_array_end(&j);
    keys_sha256("", 0, m->sha256);
}

static void do_comm(struct jupyter_client *c, struct jupyter_in *m) {
    struct jupyter_request *r = jupyter_request(c, m, NULL);
    r->silent = true;
    r->op = "comm";
    r->body = json_pack("{s:s, s:s, s:s, s:b, s:b}", "code", "", "kernel_id", c->hub->kernel,
                        "on_disconnect", "continue", "silent", true, "allow_stdin", false);
    jupyter_run(r);
}

/* ---- which ---- */

static const struct message {
    const char *type;
    void (*fn)(struct jupyter_client *c, struct jupyter_in *m);
    void (*prepare)(struct jupyter_in *m); /* beside the loop, or NULL */
} messages[] = {
    {"execute_request", do_execute_request, prepare_cell},
    {"kernel_info_request", do_kernel_info, NULL},
    {"connect_request", do_connect, NULL},
    {"complete_request", jupyter_ask, jupyter_prepare_question},
    {"inspect_request", jupyter_ask, jupyter_prepare_question},
    {"is_complete_request", jupyter_ask, jupyter_prepare_question},
    {"history_request", jupyter_ask, jupyter_prepare_question},
    {"comm_info_request", jupyter_ask, jupyter_prepare_question},
    {"comm_open", do_comm, prepare_comm},
    {"comm_msg", do_comm, prepare_comm},
    {"comm_close", do_comm, prepare_comm},
    {"input_reply", do_input_reply, NULL},
    {"interrupt_request", do_interrupt_request, NULL},
    {"shutdown_request", do_shutdown, NULL},
    {"debug_request", do_debug, NULL},
};

static const struct message *find_message(const char *type) {
    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++) {
        if (strcmp(messages[i].type, type) == 0)
            return &messages[i];
    }
    return NULL;
}

static int add_some(const char *data, size_t len, void *arg) {
    struct buf *to = arg;
    if (len > MAX_HEADER - to->len)
        return -1;
    buf_add(to, data, len);
    return 0;
}

int jupyter_prepare(struct jupyter_in *m, struct err *e) {
    const struct message *known = find_message(m->type);
    AUTO_BUF header = BUF_INIT;
    if (json_dump_callback(m->header, add_some, &header, JSON_COMPACT) < 0)
        return err_user(e, "bad_message", "its header has more than %d bytes", MAX_HEADER);
    m->parent = buf_take(&header);
    if (known && known->prepare)
        known->prepare(m);
    return 0;
}

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

void jupyter_hear(struct jupyter_client *c, struct jupyter_in *m) {
    const struct message *known = find_message(m->type);
    struct err e;
    c->hub->last_activity = jupyter_now();
    if (known) {
        known->fn(c, m);
        return;
    }
    err_user(&e, "bad_message", "its msg_type is \"%.40s\", which no kernel knows", m->type);
    jupyter_complain(c, &e);
}
