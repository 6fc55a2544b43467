/* See message.h. */

#include "remote/mcp/message.h"

#include "base/base64.h"
#include "base/json.h"

#include <stdio.h>
#include <string.h>

#define VERSION_KEY "io.modelcontextprotocol/protocolVersion"

static const char *message_text(const json_t *object, const char *key) {
    return json_string_value(json_object_get(object, key));
}

static bool is_id(const json_t *id) {
    return json_is_string(id) || json_is_number(id);
}

/* The methods whose requests name what they are about in a header, and where the name stands. */
static const char *find_name(const struct message *m) {
    static const struct {
        const char *method, *param;
    } named[] = {{"tools/call", "name"}, {"resources/read", "uri"}, {"prompts/get", "name"}};
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        if (strcmp(m->method, named[i].method) == 0)
            return json_string_value(message_param(m, named[i].param));
    return NULL;
}

int message_read(const char *text, size_t len, struct message *ret, struct err *e) {
    *ret = (struct message){.method = ""};
    if (json_read(text, len, JSON_DEPTH_MAX, &ret->root, e) < 0)
        return -1;
    const char *method = message_text(ret->root, "method");
    const json_t *id = json_object_get(ret->root, "id");
    if (method) {
        ret->method = method;
        ret->id = is_id(id) ? id : NULL;
        ret->name = find_name(ret);
    }
    const char *version = message_text(message_param(ret, "_meta"), VERSION_KEY);
    ret->is_modern = version != NULL;
    snprintf(ret->version, sizeof ret->version, "%s", version ? version : "");
    return 0;
}

void message_done(struct message *m) {
    json_decref(m->root);
    m->root = NULL;
}

const json_t *message_param(const struct message *m, const char *name) {
    return json_object_get(json_object_get(m->root, "params"), name);
}

/* As the protocol wants it: characters that a header takes, no blank at an end, and nothing that
 * looks like what it would be encoded to. */
static bool is_plain(const char *value) {
    size_t len = strlen(value);
    if (len && (value[0] == ' ' || value[len - 1] == ' '))
        return false;
    for (size_t i = 0; i < len; i++)
        if (value[i] < ' ' || value[i] > '~')
            return false;
    return strncmp(value, "=?base64?", 9) != 0;
}

void message_header(struct buf *to, const char *header, const char *value) {
    buf_addf(to, "%s: ", header);
    if (is_plain(value)) {
        buf_adds(to, value);
        return;
    }
    buf_adds(to, "=?base64?");
    base64_encode(to, value, strlen(value));
    buf_adds(to, "?=");
}

void message_error(struct buf *to, const json_t *id, int code, const char *text) {
    struct jw j = JW_INIT(to);
    jw_object(&j);
    jw_key_str(&j, "jsonrpc", "2.0");
    jw_key(&j, "id");
    jw_json(&j, id, "null");
    jw_key(&j, "error");
    jw_object(&j);
    jw_key_int(&j, "code", code);
    jw_key_str(&j, "message", text);
    jw_object_end(&j);
    jw_object_end(&j);
}

void message_error_of(struct buf *to, const char *id, int code, const char *text) {
    json_error_t ignored;
    json_auto_t *value = json_loads(id, JSON_DECODE_ANY, &ignored);
    message_error(to, is_id(value) ? value : NULL, code, text);
}
