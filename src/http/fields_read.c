/* See fields_read.h. The text becomes a tree (json_text.h), and the tree is checked (fields.h). */

#include "http/fields_read.h"

#include "base/buf.h"
#include "http/field_fault.h"
#include "http/json_text.h"

#include <string.h>
#include <strings.h>

static bool is_utf8(const char *text, size_t len) {
    json_auto_t *copy = json_stringn(text, len);
    return copy != NULL;
}

static size_t count_characters(const char *text, size_t len) {
    size_t n = 0;
    for (size_t i = 0; i < len; i++)
        n += ((unsigned char)text[i] & 0xc0) != 0x80;
    return n;
}

/* Each of these answers with one fault of the whole body, and returns -1. */
static int refuse_missing(struct buf *reply) {
    struct jw j = fields_detail_begin(reply);
    field_fault_write(&j, &field_loc_body,
                      &(struct field_fault){"missing", "Field required", json_null()});
    return fields_detail_end(&j);
}

static int refuse_type(const char *text, size_t len, struct buf *reply) {
    struct jw j = fields_detail_begin(reply);
    /* Ill-formed UTF-8 is replaced when it is written; more than what is quoted need not be copied.
     */
    size_t some = len < 2 * FIELDS_INPUT_MAX ? len : 2 * FIELDS_INPUT_MAX;
    json_auto_t *input = json_stringn_nocheck(text, some);
    field_fault_write(&j, &field_loc_body,
                      &(struct field_fault){"model_attributes_type", field_not_an_object, input});
    return fields_detail_end(&j);
}

static int refuse_json(const char *text, const struct json_fault *f, struct buf *reply) {
    struct jw j = fields_detail_begin(reply);
    AUTO_BUF ctx = BUF_INIT;
    struct jw why = JW_INIT(&ctx);
    json_auto_t *input = json_object();
    struct field_loc at = {.up = &field_loc_body, .index = count_characters(text, f->at)};
    jw_object(&why);
    jw_key_str(&why, "error", f->why);
    jw_object_end(&why);
    field_fault_write(&j, &at,
                      &(struct field_fault){"json_invalid", "JSON decode error", input, ctx.data});
    return fields_detail_end(&j);
}

static int refuse_bytes(struct buf *reply) {
    struct jw j = JW_INIT(reply);
    jw_object(&j);
    jw_key_str(&j, "detail", "There was an error parsing the body");
    jw_object_end(&j);
    return -1;
}

/* application/json or application/ANY+json, whatever the parameters. */
static bool is_json_type(const char *type) {
    static const char main_type[] = "application/";
    const size_t skip = sizeof main_type - 1;
    if (!type)
        return false;
    type += strspn(type, " \t");
    size_t len = strcspn(type, ";");
    while (len > 0 && (type[len - 1] == ' ' || type[len - 1] == '\t'))
        len--;
    if (len < skip || strncasecmp(type, main_type, skip) != 0 ||
        memchr(type + skip, '/', len - skip))
        return false;
    if (len - skip == 4)
        return strncasecmp(type + skip, "json", 4) == 0;
    return len - skip >= 5 && strncasecmp(type + len - 5, "+json", 5) == 0;
}

bool fields_take_type(const struct schema *s, const char *content_type) {
    return is_json_type(content_type) || (s->untyped && !content_type) || s->any_type;
}

bool fields_want_body(const struct schema *s) {
    for (size_t i = 0; i < s->n; i++) {
        if (s->fields[i].flags & FIELD_REQUIRED)
            return true;
    }
    return s->open && !s->any_type; /* open tables are those of the Code Interpreter API */
}

int fields_read(const struct schema *s, const char *content_type, const char *text, size_t len,
                json_t **ret, int *ret_status, struct buf *reply) {
    *ret_status = 422;
    if (len == 0 && !fields_want_body(s)) {
        *ret = json_object();
        return 0;
    }
    if (len == 0)
        return refuse_missing(reply);
    if (!fields_take_type(s, content_type))
        return refuse_type(text, len, reply);
    struct json_fault f;
    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) { /* Python does not count it either */
        text += 3;
        len -= 3;
    }
    json_auto_t *root = json_text_parse(text, len, &f);
    if (!root) {
        if (is_utf8(text, len))
            return refuse_json(text, &f, reply);
        *ret_status = 400;
        return refuse_bytes(reply);
    }
    if (json_is_null(root)) /* the same to FastAPI as no body */
        return refuse_missing(reply);
    AUTO_BUF faults = BUF_INIT;
    struct jw j = fields_detail_begin(&faults);
    if (fields_check(s, root, &j) > 0) {
        fields_detail_end(&j);
        buf_add(reply, faults.data, faults.len);
        return -1;
    }
    *ret = json_incref(root);
    return 0;
}
