/* See mirror.h. */

#include "mcp/mirror.h"

#include "base/fd.h"
#include "http/http.h"
#include "mcp/header.h"
#include "mcp/internal.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define DEPTH_MAX 8

struct same {
    const char *name, *value;
    bool differ;
};

static void same_on_header(void *arg, const char *name, const char *value) {
    struct same *s = arg;
    if (strcasecmp(name, s->name) != 0)
        return;
    s->differ |= s->value && strcmp(s->value, value) != 0;
    s->value = value;
}

bool mirror_header(struct http_req *r, const char *name, const char **ret) {
    struct same s = {.name = name};
    http_each_header(r, same_on_header, &s);
    *ret = s.value;
    return !s.differ;
}

static bool header_says(struct http_req *r, const char *name, const char *text) {
    const char *value;
    return mirror_header(r, name, &value) && value && mcp_header_is(value, text, strlen(text));
}

static const char *mirrored_name(const struct rpc *m) {
    static const char *const with[][2] = {
        {"tools/call", "name"}, {"prompts/get", "name"}, {"resources/read", "uri"}};
    for (size_t i = 0; i < sizeof with / sizeof *with; i++)
        if (strcmp(m->method, with[i][0]) == 0)
            return json_string_value(json_object_get(m->params, with[i][1]));
    return NULL;
}

const char *mirror_wrong(struct http_req *r, const struct rpc *m) {
    const char *name = mirrored_name(m);
    if (!header_says(r, "Mcp-Method", m->method))
        return "the header Mcp-Method is not the method of the body";
    if (name && !header_says(r, "Mcp-Name", name))
        return "the header Mcp-Name is not the name or uri of the body";
    return NULL;
}

/* What an argument looks like in a header; false: it is in none. */
static bool as_text(const json_t *v, struct buf *to) {
    if (json_is_string(v))
        buf_add(to, json_string_value(v), json_string_length(v));
    else if (json_is_integer(v))
        buf_addf(to, "%lld", (long long)json_integer_value(v));
    else if (json_is_boolean(v))
        buf_adds(to, json_is_true(v) ? "true" : "false");
    else
        return false;
    return true;
}

static bool one_is_right(struct http_req *r, const char *header, const json_t *value) {
    AUTO_BUF name = BUF_INIT;
    AUTO_BUF text = BUF_INIT;
    const char *is;
    buf_addf(&name, "Mcp-Param-%s", header);
    if (!mirror_header(r, name.data, &is))
        return false;
    if (!as_text(value, &text))
        return is == NULL;
    return is && mcp_header_is(is, text.data, text.len);
}

/* The first header that is wrong; or NULL. */
static const char *wrong_one(struct http_req *r, const json_t *schema, const json_t *args,
                             unsigned depth) {
    const char *key, *wrong = NULL;
    json_t *one;
    if (depth == 0)
        return NULL;
    json_object_foreach(json_object_get(schema, "properties"), key, one) {
        const char *header = json_string_value(json_object_get(one, "x-mcp-header"));
        const json_t *value = json_object_get(args, key);
        if (header && !one_is_right(r, header, value))
            return header;
        wrong = wrong_one(r, one, value, depth - 1);
        if (wrong)
            return wrong;
    }
    return NULL;
}

bool mirror_check(struct mcp_call *c, struct http_req *r, const json_t *schema) {
    const char *wrong = schema ? wrong_one(r, schema, c->args, DEPTH_MAX) : NULL;
    AUTO_BUF message = BUF_INIT;
    if (!wrong)
        return true;
    buf_addf(&message, "the header Mcp-Param-%.100s is not the argument of the body", wrong);
    call_error(c, 400, RPC_HEADER, message.data, NULL);
    return false;
}
