/* See host_files.h. The bytes go over the server's /mcp/files, which knows the sandbox by the same
 * query as its /mcp. */

#include "remote/mcp/host_files.h"

#include "base/fd.h"
#include "base/json.h"
#include "cli/client.h"
#include "remote/mcp/home.h"
#include "remote/mcp/host_path.h"
#include "remote/mcp/options.h"
#include "remote/mcp/pump.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct host_files {
    struct host_dirs dirs;
    const struct home *home; /* borrowed */
};

/* As ipybox has them. */
static const char tools[] =
    "[{\"name\":\"upload_file\",\"title\":\"Upload a file\",\"description\":\"Copy a file of the "
    "user's machine into the sandbox. Only files in the directories that the user allows.\","
    "\"inputSchema\":{\"type\":\"object\",\"properties\":{\"relpath\":{\"type\":\"string\","
    "\"description\":\"where it goes, relative to the sandbox's working directory\"},"
    "\"local_path\":{\"type\":\"string\",\"description\":\"absolute path on the user's machine\"}},"
    "\"required\":[\"relpath\",\"local_path\"]},\"annotations\":{\"readOnlyHint\":false,"
    "\"destructiveHint\":false,\"openWorldHint\":false}},"
    "{\"name\":\"download_file\",\"title\":\"Download a file\",\"description\":\"Copy a file of "
    "the sandbox to the user's machine. Directories that are missing are made; only in those that "
    "the user allows.\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"relpath\":{\"type\":"
    "\"string\",\"description\":\"the file, relative to the sandbox's working directory\"},"
    "\"local_path\":{\"type\":\"string\",\"description\":\"absolute path on the user's machine\"}},"
    "\"required\":[\"relpath\",\"local_path\"]},\"annotations\":{\"readOnlyHint\":false,"
    "\"destructiveHint\":true,\"openWorldHint\":false}}]";

int host_files_new(const struct mcp_options *o, const struct home *home, struct host_files **ret,
                   struct err *e) {
    *ret = NULL;
    if (!o->tools || (strcmp(o->tools, "ipybox") != 0 && strcmp(o->tools, "all") != 0))
        return 0;
    struct host_files *h = xcalloc(1, sizeof *h);
    h->home = home;
    if (host_dirs_open(&h->dirs, &o->allowed_dirs, e) < 0) {
        host_files_free(h);
        return -1;
    }
    *ret = h;
    return 0;
}

void host_files_free(struct host_files *h) {
    if (!h)
        return;
    host_dirs_done(&h->dirs);
    free(h);
}

bool host_files_add_tools(json_t *answer) {
    json_t *result = json_object_get(answer, "result");
    json_t *list = json_object_get(result, "tools");
    json_error_t ignored;
    if (!json_is_array(list) || json_object_get(result, "nextCursor"))
        return false;
    json_auto_t *more = json_loads(tools, 0, &ignored);
    return json_array_extend(list, more) == 0;
}

/* ---- a call ---- */

struct move {
    struct flight flight; /* first: see flight.h */
    struct pump *pump;    /* borrowed */
    json_t *id;           /* owned */
    const char *tool;     /* static */
    bool is_modern;
    struct host_write write;
};

/* text NULL: it went well. */
static void move_answer(struct pump *p, const json_t *id, bool is_modern, const char *tool,
                        const char *text) {
    AUTO_BUF line = BUF_INIT;
    struct jw j = JW_INIT(&line);
    jw_object(&j);
    jw_key_str(&j, "jsonrpc", "2.0");
    jw_key(&j, "id");
    jw_json(&j, id, "null");
    jw_key(&j, "result");
    jw_object(&j);
    if (is_modern)
        jw_key_str(&j, "resultType", "complete");
    jw_key(&j, "content");
    jw_array(&j);
    if (text) {
        AUTO_BUF whole = BUF_INIT;
        buf_addf(&whole, "Error executing tool %s: %s", tool, text);
        jw_object(&j);
        jw_key_str(&j, "type", "text");
        jw_key_str(&j, "text", whole.data);
        jw_object_end(&j);
    }
    jw_array_end(&j);
    jw_key_bool(&j, "isError", text != NULL);
    jw_object_end(&j);
    jw_object_end(&j);
    out_line(&p->out, line.data, line.len);
}

static void add_refusal(const struct move *m, struct buf *to) {
    struct client_outcome o = CLIENT_OUTCOME_INIT;
    remote_refused(&m->flight.reply, &o);
    buf_adds(to, o.message.data);
    client_outcome_done(&o);
}

static void move_on_end(struct flight *f, const struct err *e) {
    struct move *m = (struct move *)(void *)f;
    struct err failed;
    AUTO_BUF why = BUF_INIT;
    if (e)
        buf_adds(&why, e->text);
    else if (f->reply.status / 100 != 2)
        add_refusal(m, &why);
    else if (m->write.dir >= 0 && host_path_commit(&m->write, &failed) < 0)
        buf_adds(&why, failed.text);
    move_answer(m->pump, m->id, m->is_modern, m->tool, why.len ? why.data : NULL);
}

static void move_on_free(struct flight *f) {
    struct move *m = (struct move *)(void *)f;
    host_write_done(&m->write);
    json_decref(m->id);
}

static const struct flight_kind move_kind = {.on_end = move_on_end, .on_free = move_on_free};

static int begin(struct host_files *h, struct move *m, bool uploads, const char *local,
                 struct err *e) {
    return uploads ? host_path_read(&h->dirs, local, &m->flight.from, e)
                   : host_path_write(&h->dirs, local, &m->write, &m->flight.to, e);
}

static void move_start(struct host_files *h, struct pump *p, const struct message *msg,
                       bool uploads) {
    const json_t *args = message_param(msg, "arguments");
    const char *relpath = json_string_value(json_object_get(args, "relpath"));
    const char *local = json_string_value(json_object_get(args, "local_path"));
    struct err e;
    struct move *m = flight_new(sizeof *m, &move_kind);
    m->pump = p;
    m->id = json_deep_copy(msg->id);
    m->tool = uploads ? "upload_file" : "download_file";
    m->is_modern = msg->is_modern;
    m->write.dir = -1;
    if (!relpath || !local || !*relpath) {
        move_answer(p, msg->id, msg->is_modern, m->tool,
                    "Input validation error: relpath and local_path are required, and are strings");
        flight_free(&m->flight);
        return;
    }
    if (begin(h, m, uploads, local, &e) < 0) {
        move_answer(p, msg->id, msg->is_modern, m->tool, e.text);
        flight_free(&m->flight);
        return;
    }
    AUTO_BUF path = BUF_INIT;
    home_file(h->home, relpath, &path);
    if (p->header)
        flight_header(&m->flight, p->header);
    p->called = true;
    if (flight_start(&p->flights, &m->flight, uploads ? "PUT" : "GET", path.data, &e) < 0)
        move_answer(p, msg->id, msg->is_modern, uploads ? "upload_file" : "download_file", e.text);
}

bool host_files_take(struct host_files *h, struct pump *p, const struct message *m) {
    if (!m->id || !m->name || strcmp(m->method, "tools/call") != 0)
        return false;
    bool uploads = strcmp(m->name, "upload_file") == 0;
    if (!uploads && strcmp(m->name, "download_file") != 0)
        return false;
    move_start(h, p, m, uploads);
    return true;
}
