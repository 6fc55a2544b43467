/* See rpc.h. */

#include "mcp/rpc.h"

#include "http/json_text.h"

#include <string.h>

bool rpc_is_small(const char *text, size_t len) {
    return len <= RPC_SHORT && json_text_values(text, len, RPC_FEW + 1) <= RPC_FEW;
}

json_t *rpc_parse(const char *text, size_t len, struct err *e) {
    json_t *tree = NULL;
    if (len > RPC_MAX) {
        err_user(e, "bad_json", "the message has more than %u bytes", RPC_MAX);
        return NULL;
    }
    if (json_text_values(text, len, RPC_VALUES_MAX + 1) > RPC_VALUES_MAX) {
        err_user(e, "bad_json", "the message has more than %u values", RPC_VALUES_MAX);
        return NULL;
    }
    return json_read(text, len, JSON_DEPTH_MAX, &tree, e) < 0 ? NULL : tree;
}

static struct rpc rpc_bad(enum rpc_code code, const char *wrong, json_t *id) {
    return (struct rpc){.kind = RPC_BAD, .code = code, .wrong = wrong, .id = id};
}

static bool rpc_is_id(const json_t *id) {
    return json_is_integer(id) || (json_is_string(id) && json_string_length(id) <= RPC_ID_MAX);
}

/* An error whose sender could not read our id has none, or null. */
static struct rpc read_response(json_t *message, json_t *id) {
    struct rpc r = {.kind = RPC_RESPONSE,
                    .id = json_is_null(id) ? NULL : id,
                    .result = json_object_get(message, "result"),
                    .error = json_object_get(message, "error")};
    if (!r.result == !r.error)
        return rpc_bad(RPC_INVALID, "a message has method, result or error", NULL);
    if (r.result && !json_is_object(r.result))
        return rpc_bad(RPC_INVALID, "result is not an object", NULL);
    if (r.error &&
        (!json_is_object(r.error) || !json_is_integer(json_object_get(r.error, "code")) ||
         !json_is_string(json_object_get(r.error, "message"))))
        return rpc_bad(RPC_INVALID, "error is not an object with code and message", NULL);
    if (r.id ? !rpc_is_id(r.id) : r.result != NULL)
        return rpc_bad(RPC_INVALID, "id is not a string of at most 256 bytes or an integer", NULL);
    return r;
}

struct rpc rpc_read(json_t *message) {
    json_t *id = json_object_get(message, "id"), *method = json_object_get(message, "method");
    const char *version = json_string_value(json_object_get(message, "jsonrpc"));
    if (!json_is_object(message))
        return rpc_bad(RPC_INVALID, "the message is not an object", NULL);
    if (!version || strcmp(version, "2.0") != 0)
        return rpc_bad(RPC_INVALID, "jsonrpc is not \"2.0\"", rpc_is_id(id) ? id : NULL);
    if (!method)
        return read_response(message, id);
    if (id && !rpc_is_id(id))
        return rpc_bad(RPC_INVALID, "id is not a string of at most 256 bytes or an integer", NULL);
    if (!json_is_string(method) || json_string_length(method) == 0)
        return rpc_bad(RPC_INVALID, "method is not a string", id);
    struct rpc r = {.kind = id ? RPC_REQUEST : RPC_NOTIFICATION,
                    .id = id,
                    .method = json_string_value(method),
                    .params = json_object_get(message, "params")};
    if (r.params && !json_is_object(r.params))
        return rpc_bad(RPC_PARAMS, "params is not an object", id);
    return r;
}

static void rpc_begin(struct jw *j) {
    jw_object(j);
    jw_key_str(j, "jsonrpc", "2.0");
}

void rpc_begin_request(struct jw *j, const char *id, const char *method) {
    rpc_begin(j);
    jw_key_str(j, "id", id);
    jw_key_str(j, "method", method);
}

void rpc_begin_notification(struct jw *j, const char *method) {
    rpc_begin(j);
    jw_key_str(j, "method", method);
}

void rpc_begin_response(struct jw *j, const json_t *id) {
    rpc_begin(j);
    if (!id)
        return;
    jw_key(j, "id");
    if (json_is_integer(id))
        jw_int(j, json_integer_value(id));
    else
        jw_strn(j, json_string_value(id), json_string_length(id));
}

void rpc_end(struct jw *j) {
    jw_object_end(j);
}

void rpc_error(struct buf *to, const json_t *id, int code, const char *message, const char *data) {
    struct jw j = JW_INIT(to);
    rpc_begin_response(&j, id);
    jw_key(&j, "error");
    jw_object(&j);
    jw_key_int(&j, "code", code);
    jw_key_str(&j, "message", message);
    if (data) {
        jw_key(&j, "data");
        jw_raw(&j, data, strlen(data));
    }
    jw_object_end(&j);
    rpc_end(&j);
}
