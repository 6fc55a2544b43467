/* `cloche sandbox delete`, `interrupt`, `restart`, `pause`, `resume`, `network` and `extend`. */

#include "remote/sandbox/life.h"

#include "base/fd.h"
#include "base/url.h"
#include "cli/report.h"
#include "remote/sandbox/manage.h"
#include "remote/sandbox/sandbox_cmd.h"
#include "remote/table.h"
#include "remote/value.h"

#include <jansson.h>
#include <string.h>

/* Of all that were there, some may have ended meanwhile. */
static int delete_all(struct sandbox_cmd *b, struct err *e) {
    json_auto_t *ids = NULL;
    const json_t *id;
    size_t i;
    if (sandbox_find_all(b, &ids, e) < 0)
        return -1;
    json_array_foreach(ids, i, id) {
        AUTO_BUF path = BUF_INIT;
        AUTO_REPLY reply = REMOTE_REPLY_INIT;
        buf_adds(&path, "/v1/sandboxes/");
        url_encode(&path, json_is_string(id) ? json_string_value(id) : "", "");
        const struct remote_call c = {.method = "DELETE", .path = path.data, .upload = -1};
        if (remote_do(b->r, &c, &reply, e) < 0)
            return -1;
        bool is_gone = reply.status / 100 == 2 || reply.status == 404 || reply.status == 410;
        if (reply.signal || !is_gone)
            return sandbox_cmd_refused(b, &reply, e);
    }
    return 0;
}

int sandbox_delete(struct sandbox_cmd *b, struct err *e) {
    AUTO_BUF path = BUF_INIT;
    if (b->o.all)
        return delete_all(b, e);
    for (unsigned i = 0; i < b->o.words.n; i++) {
        AUTO_REPLY reply = REMOTE_REPLY_INIT;
        buf_clear(&path);
        if (sandbox_find_word(b, b->o.words.items[i], &path, e) < 0)
            return -1;
        const struct remote_call c = {.method = "DELETE", .path = path.data, .upload = -1};
        if (sandbox_cmd_call(b, &c, &reply, e) < 0)
            return -1;
    }
    return 0;
}

/* A POST to what is below the sandbox; *ret is the answer, owned. */
static int post(struct sandbox_cmd *b, const char *what, json_t **ret, struct err *e) {
    AUTO_BUF path = BUF_INIT;
    json_auto_t *body = json_object();
    if (b->o.kernel &&
        value_set_text(body, "kernel_id", "--kernel", b->o.kernel, strlen(b->o.kernel), e) < 0)
        return -1;
    if (sandbox_find(b, &path, e) < 0)
        return -1;
    buf_adds(&path, what);
    return sandbox_cmd_ask(b, "POST", path.data, body, ret, e);
}

int sandbox_interrupt(struct sandbox_cmd *b, struct err *e) {
    json_auto_t *answer = NULL;
    if (post(b, "/interrupt", &answer, e) < 0)
        return -1;
    if (!json_is_true(json_object_get(answer, "interrupted")))
        report_say("nothing was running");
    return 0;
}

int sandbox_restart(struct sandbox_cmd *b, struct err *e) {
    json_auto_t *answer = NULL;
    return post(b, "/restart", &answer, e);
}

int sandbox_pause(struct sandbox_cmd *b, struct err *e) {
    json_auto_t *answer = NULL;
    return post(b, "/pause", &answer, e);
}

int sandbox_resume(struct sandbox_cmd *b, struct err *e) {
    json_auto_t *answer = NULL;
    return post(b, "/resume", &answer, e);
}

/* What the options ask for; "" for nothing. */
static void network_words(const struct sandbox_options *o, struct buf *to) {
    buf_adds(to, o->none ? "none" : o->open ? "open" : "");
    for (unsigned i = 0; i < o->allow.n; i++)
        buf_addf(to, "%s%s", i ? "," : "", o->allow.items[i]);
}

int sandbox_network(struct sandbox_cmd *b, struct err *e) {
    AUTO_BUF path = BUF_INIT;
    AUTO_BUF words = BUF_INIT;
    json_auto_t *answer = NULL;
    json_auto_t *body = json_object();
    bool changes = b->o.allow.n || b->o.none || b->o.open;
    network_words(&b->o, &words);
    if ((changes && value_set_text(body, "network", "--allow", words.data, words.len, e) < 0) ||
        sandbox_find(b, &path, e) < 0 ||
        sandbox_cmd_ask(b, changes ? "PATCH" : "GET", path.data, changes ? body : NULL, &answer,
                        e) < 0)
        return -1;
    AUTO_FREE char *text =
        json_dumps(json_object_get(answer, "network"), JSON_COMPACT | JSON_ENCODE_ANY);
    table_line(text ? text : "null");
    return 0;
}

/* Unless the command line says how long, as long again as it had at first. */
int sandbox_extend(struct sandbox_cmd *b, struct err *e) {
    AUTO_BUF path = BUF_INIT;
    AUTO_BUF line = BUF_INIT;
    json_auto_t *sandbox = NULL;
    json_auto_t *after = NULL;
    json_auto_t *body = json_object();
    if (sandbox_find(b, &path, e) < 0)
        return -1;
    if (b->o.ttl_s)
        json_object_set_new(body, "ttl_seconds", json_integer(b->o.ttl_s));
    if (b->o.idle_s)
        json_object_set_new(body, "idle_seconds", json_integer(b->o.idle_s));
    if (!b->o.ttl_s && !b->o.idle_s) {
        if (sandbox_cmd_ask(b, "GET", path.data, NULL, &sandbox, e) < 0)
            return -1;
        json_object_set(body, "ttl_seconds", json_object_get(sandbox, "ttl_seconds"));
    }
    if (sandbox_cmd_ask(b, "PATCH", path.data, body, &after, e) < 0)
        return -1;
    buf_adds(&line, "ends ");
    sandbox_add_moment(&line, json_object_get(after, "expires"));
    buf_adds(&line, ", if idle ");
    sandbox_add_moment(&line, json_object_get(after, "idle_expires"));
    table_line(line.data);
    return 0;
}
