/* See field_fault.h.
 *
 * SECURITY: whatever is quoted back is bounded, each value and each place, so that a large body
 * cannot make a much larger reply. */

#include "http/field_fault.h"

#include "base/buf.h"
#include "http/fields.h"

#include <string.h>

const struct field_loc field_loc_body = {.name = "body"};
const char field_not_an_object[] =
    "Input should be a valid dictionary or object to extract fields from";

/* Cut at a character when it is too long. */
static void write_text(struct jw *j, const char *text, size_t len) {
    if (len <= FIELDS_INPUT_MAX) {
        jw_strn(j, text, len);
        return;
    }
    len = FIELDS_INPUT_MAX;
    for (int i = 0; i < 3 && ((unsigned char)text[len] & 0xc0) == 0x80; i++)
        len--;
    AUTO_BUF cut = BUF_INIT;
    buf_add(&cut, text, len);
    buf_adds(&cut, "...");
    jw_strn(j, cut.data, cut.len);
}

static bool is_enough(const struct jw *j) {
    return j->to->len > FIELDS_INPUT_MAX;
}

/* Compact JSON. It stops as soon as there is more than what will be quoted, which also bounds the
 * recursion, since every level writes at least a byte. */
static void dump(struct jw *j, const json_t *v) {
    const char *key;
    json_t *inner;
    size_t i;
    switch (json_typeof(v)) {
    case JSON_OBJECT:
        jw_object(j);
        json_object_foreach((json_t *)v, key, inner) {
            if (is_enough(j))
                return;
            write_text(j, key, strlen(key)); /* jw_key with a bound */
            buf_addc(j->to, ':');
            j->comma = false;
            dump(j, inner);
        }
        jw_object_end(j);
        break;
    case JSON_ARRAY:
        jw_array(j);
        json_array_foreach(v, i, inner) {
            if (is_enough(j))
                return;
            dump(j, inner);
        }
        jw_array_end(j);
        break;
    case JSON_STRING:
        write_text(j, json_string_value(v), json_string_length(v));
        break;
    case JSON_INTEGER:
        jw_int(j, json_integer_value(v));
        break;
    case JSON_REAL:
        jw_real(j, json_real_value(v));
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        jw_bool(j, json_is_true(v));
        break;
    case JSON_NULL:
        jw_null(j);
        break;
    }
}

/* A long string is cut as it is, anything else as its JSON. */
static void write_input(struct jw *j, const json_t *v) {
    AUTO_BUF text = BUF_INIT;
    struct jw inner = JW_INIT(&text);
    dump(&inner, v);
    if (json_is_string(v) || text.len <= FIELDS_INPUT_MAX)
        jw_raw(j, text.data, text.len);
    else
        write_text(j, text.data, text.len);
}

static void write_loc(struct jw *j, const struct field_loc *at) {
    if (at->up)
        write_loc(j, at->up);
    if (at->name)
        write_text(j, at->name, strlen(at->name));
    else
        jw_uint(j, at->index);
}

static const struct field fault_fields[] = {
    HAS("type", FIELD_STRING, .help = "what is wrong, in the words of pydantic"),
    {.name = "loc",
     .type = FIELD_LIST,
     .flags = FIELD_REQUIRED | FIELD_OR_INT,
     .help = "where: names of fields, and places in lists"},
    HAS("msg", FIELD_STRING),
    HAS("input", FIELD_JSON, .help = "what was there instead; cut when it is long"),
    MAY_HAVE("ctx", MAP_OF(FIELD_JSON), .help = "the bounds that it is outside of"),
};
const struct schema field_fault_schema = {SCHEMA("ValidationError", fault_fields)};

void field_fault_write(struct jw *j, const struct field_loc *at, const struct field_fault *f) {
    jw_object(j);
    jw_key_str(j, "type", f->type);
    jw_key(j, "loc");
    jw_array(j);
    write_loc(j, at);
    jw_array_end(j);
    jw_key_str(j, "msg", f->msg);
    jw_key(j, "input");
    write_input(j, f->input);
    if (f->ctx) {
        jw_key(j, "ctx");
        jw_raw(j, f->ctx, strlen(f->ctx));
    }
    jw_object_end(j);
}
