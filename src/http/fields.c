/* See fields.h. The text becomes a tree (json_text.h); the check walks table and tree together; it
 * goes no deeper than the tree, so 64 levels.
 *
 * SECURITY: whatever is quoted back is bounded, each value and the number of faults, so that a
 * large body cannot make a much larger reply. */

#include "http/fields.h"

#include "base/buf.h"
#include "base/log.h"
#include "base/nearest.h"
#include "http/json_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Where in the body a value lies; each level is on the stack of its check. */
struct loc {
    const struct loc *up; /* NULL: the body */
    const char *name;     /* NULL: an index */
    size_t index;
};

static const struct loc loc_body = {.name = "body"};

struct fault {
    const char *type, *msg;
    const json_t *input;
    const char *ctx; /* a JSON object, or NULL */
};

struct check {
    struct jw *errors; /* borrowed */
    unsigned faults;
};

static const char msg_model[] =
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

static void write_loc(struct jw *j, const struct loc *at) {
    if (at->up)
        write_loc(j, at->up);
    if (at->name)
        write_text(j, at->name, strlen(at->name));
    else
        jw_uint(j, at->index);
}

static void write_fault(struct jw *j, const struct loc *at, const struct fault *f) {
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

static void fault(struct check *c, const struct loc *at, const struct fault *f) {
    if (c->faults >= FIELDS_FAULTS_MAX)
        return;
    c->faults++;
    write_fault(c->errors, at, f);
}

/* What a lax boolean means: 0 or 1; -1 when it has the form of one but means nothing, -2 when it
 * has not even that. */
static int bool_meaning(const json_t *v) {
    static const char *const words[2][6] = {{"0", "off", "f", "false", "n", "no"},
                                            {"1", "on", "t", "true", "y", "yes"}};
    if (json_is_boolean(v))
        return json_is_true(v);
    if (json_is_string(v)) {
        for (int meaning = 0; meaning < 2; meaning++)
            for (int i = 0; i < 6; i++)
                if (strcasecmp(json_string_value(v), words[meaning][i]) == 0)
                    return meaning;
        return -1;
    }
    double d = json_number_value(v);
    if (json_is_number(v) && fabs(d) < 9e18 && d == (double)(int64_t)d)
        return d == 0 || d == 1 ? (int)d : -1;
    return json_is_integer(v) ? -1 : -2;
}

static void check_bool(struct check *c, const json_t *v, const struct loc *at) {
    int meaning = bool_meaning(v);
    if (meaning == -1)
        fault(c, at,
              &(struct fault){"bool_parsing",
                              "Input should be a valid boolean, unable to interpret input", v});
    else if (meaning == -2)
        fault(c, at, &(struct fault){"bool_type", "Input should be a valid boolean", v});
}

/* 'a', 'b' or 'c' */
static void add_words(struct buf *b, const char *const *words) {
    for (size_t i = 0; words[i]; i++)
        buf_addf(b, "%s'%s'", i == 0 ? "" : words[i + 1] ? ", " : " or ", words[i]);
}

static void check_words(struct check *c, const char *const *words, const json_t *v,
                        const struct loc *at) {
    const char *text = json_string_value(v);
    for (size_t i = 0; text && words[i]; i++)
        if (strcmp(text, words[i]) == 0)
            return;
    AUTO_BUF expected = BUF_INIT;
    AUTO_BUF msg = BUF_INIT;
    AUTO_BUF ctx = BUF_INIT;
    struct jw j = JW_INIT(&ctx);
    add_words(&expected, words);
    buf_addf(&msg, "Input should be %s", expected.data);
    jw_object(&j);
    jw_key_str(&j, "expected", expected.data);
    jw_object_end(&j);
    fault(c, at, &(struct fault){"literal_error", msg.data, v, ctx.data});
}

static void check_string(struct check *c, const struct field *f, const json_t *v,
                         const struct loc *at) {
    if (f->words)
        check_words(c, f->words, v, at);
    else if (!json_is_string(v))
        fault(c, at, &(struct fault){"string_type", "Input should be a valid string", v});
    else if (f->wrong && f->wrong(v)) {
        AUTO_BUF msg = BUF_INIT;
        buf_addf(&msg, "Value error, %s", f->wrong(v));
        fault(c, at, &(struct fault){"value_error", msg.data, v, "{\"error\":{}}"});
    }
}

static void out_of_range(struct check *c, const struct field *f, const json_t *v,
                         const struct loc *at, bool low) {
    AUTO_BUF msg = BUF_INIT;
    AUTO_BUF ctx = BUF_INIT;
    int64_t bound = low ? f->min : f->max;
    buf_addf(&msg, "Input should be %s than or equal to %" PRId64, low ? "greater" : "less", bound);
    /* pydantic keeps the bound of a real number as a real number, but prints it short */
    buf_addf(&ctx, "{\"%s\":%" PRId64 "%s}", low ? "ge" : "le", bound,
             f->type == FIELD_REAL ? ".0" : "");
    fault(c, at,
          &(struct fault){low ? "greater_than_equal" : "less_than_equal", msg.data, v, ctx.data});
}

/* A number that is too large for us is still too large for any bound. */
static int64_t clamped(double d) {
    return d >= 9e18 ? INT64_MAX : d <= -9e18 ? INT64_MIN : (int64_t)d;
}

/* "5", " -5 ", "5.0" */
static bool text_meaning(const char *text, int64_t *ret) {
    char *end;
    double d = strtod(text, &end);
    const char *digits = text + strspn(text, " \t\r\n");
    digits += *digits == '-' || *digits == '+';
    size_t n = strspn(digits, "0123456789"), zeros = 0;
    if (digits[n] == '.')
        zeros = 1 + strspn(digits + n + 1, "0");
    *ret = clamped(d);
    return n > 0 && zeros != 1 && end == digits + n + zeros && end[strspn(end, " \t\r\n")] == '\0';
}

enum int_form { INT_GOOD, INT_TYPE, INT_TEXT, INT_FRACTION };

/* What a lax integer means, as pydantic reads it. */
static enum int_form int_meaning(const json_t *v, int64_t *ret) {
    *ret = json_is_integer(v) ? json_integer_value(v) : json_is_true(v);
    if (json_is_integer(v) || json_is_boolean(v))
        return INT_GOOD;
    if (json_is_string(v))
        return text_meaning(json_string_value(v), ret) ? INT_GOOD : INT_TEXT;
    double d = json_real_value(v);
    *ret = clamped(d);
    return !json_is_real(v) ? INT_TYPE : d == floor(d) ? INT_GOOD : INT_FRACTION;
}

static void check_int(struct check *c, const struct field *f, const json_t *v,
                      const struct loc *at) {
    static const struct fault faults[] = {
        [INT_TYPE] = {"int_type", "Input should be a valid integer"},
        [INT_TEXT] = {"int_parsing",
                      "Input should be a valid integer, unable to parse string as an integer"},
        [INT_FRACTION] = {"int_from_float", "Input should be a valid integer, got a number with a "
                                            "fractional part"},
    };
    int64_t n = 0;
    enum int_form form = int_meaning(v, &n);
    if (!(f->flags & FIELD_LAX) && !json_is_integer(v))
        form = INT_TYPE;
    if (form != INT_GOOD)
        fault(c, at, &(struct fault){faults[form].type, faults[form].msg, v});
    else if (f->flags & FIELD_MIN && n < f->min)
        out_of_range(c, f, v, at, true);
    else if (f->flags & FIELD_MAX && n > f->max)
        out_of_range(c, f, v, at, false);
}

static void check_real(struct check *c, const struct field *f, const json_t *v,
                       const struct loc *at) {
    if (!json_is_number(v))
        fault(c, at, &(struct fault){"float_type", "Input should be a valid number", v});
    else if (f->flags & FIELD_MIN && json_number_value(v) < (double)f->min)
        out_of_range(c, f, v, at, true);
    else if (f->flags & FIELD_MAX && json_number_value(v) > (double)f->max)
        out_of_range(c, f, v, at, false);
}

/* True when the number of items is as it must be. Otherwise they are not looked at. */
static bool check_count(struct check *c, const struct field *f, const json_t *v,
                        const struct loc *at) {
    int64_t n = (int64_t)(f->type == FIELD_LIST ? json_array_size(v) : json_object_size(v));
    bool few = f->flags & FIELD_MIN && n < f->min;
    bool many = f->flags & FIELD_MAX && n > f->max;
    if (!few && !many)
        return true;
    const char *kind = f->type == FIELD_LIST ? "List" : "Dictionary";
    int64_t bound = few ? f->min : f->max;
    AUTO_BUF msg = BUF_INIT;
    AUTO_BUF ctx = BUF_INIT;
    buf_addf(&msg, "%s should have at %s %" PRId64 " item%s after validation, not %" PRId64, kind,
             few ? "least" : "most", bound, bound == 1 ? "" : "s", n);
    buf_addf(&ctx,
             "{\"field_type\":\"%s\",\"%s_length\":%" PRId64 ",\"actual_length\":%" PRId64 "}",
             kind, few ? "min" : "max", bound, n);
    fault(c, at, &(struct fault){few ? "too_short" : "too_long", msg.data, v, ctx.data});
    return false;
}

static void check_object(struct check *c, const struct schema *s, const json_t *v,
                         const struct loc *at);

static void check_list(struct check *c, const struct field *f, const json_t *v,
                       const struct loc *at) {
    if (!json_is_array(v)) {
        fault(c, at, &(struct fault){"list_type", "Input should be a valid list", v});
        return;
    }
    if (!check_count(c, f, v, at))
        return;
    for (size_t i = 0; i < json_array_size(v) && c->faults < FIELDS_FAULTS_MAX; i++) {
        struct loc item = {.up = at, .index = i};
        if (f->of)
            check_object(c, f->of, json_array_get(v, i), &item);
        else
            check_string(c, f, json_array_get(v, i), &item);
    }
}

static void check_map(struct check *c, const struct field *f, const json_t *v,
                      const struct loc *at) {
    const char *key;
    json_t *inner;
    if (!json_is_object(v)) {
        fault(c, at, &(struct fault){"dict_type", "Input should be a valid dictionary", v});
        return;
    }
    if (!check_count(c, f, v, at))
        return;
    json_object_foreach((json_t *)v, key, inner) {
        if (c->faults >= FIELDS_FAULTS_MAX)
            return;
        check_string(c, f, inner, &(struct loc){.up = at, .name = key});
    }
}

static void check_field(struct check *c, const struct field *f, const json_t *v,
                        const struct loc *at) {
    if (json_is_null(v) && f->flags & FIELD_NULLABLE)
        return;
    switch (f->type) {
    case FIELD_STRING:
        if (!json_is_integer(v) || !(f->flags & FIELD_OR_INT))
            check_string(c, f, v, at);
        break;
    case FIELD_INT:
        check_int(c, f, v, at);
        break;
    case FIELD_REAL:
        check_real(c, f, v, at);
        break;
    case FIELD_BOOL:
        check_bool(c, v, at);
        break;
    case FIELD_LIST:
        check_list(c, f, v, at);
        break;
    case FIELD_OBJECT:
        check_object(c, f->of, v, at);
        break;
    case FIELD_MAP:
        check_map(c, f, v, at);
        break;
    }
}

static bool has_field(const struct schema *s, const char *name) {
    for (unsigned i = 0; i < s->n; i++)
        if (strcmp(s->fields[i].name, name) == 0)
            return true;
    return false;
}

static void check_unknown(struct check *c, const struct schema *s, const json_t *v,
                          const struct loc *at) {
    const char *key;
    json_t *inner;
    json_object_foreach((json_t *)v, key, inner) {
        if (c->faults >= FIELDS_FAULTS_MAX)
            return;
        if (!has_field(s, key))
            fault(c, &(struct loc){.up = at, .name = key},
                  &(struct fault){"extra_forbidden", "Extra inputs are not permitted", inner});
    }
}

#define UNKNOWN_MAX 20

void fields_unknown(const struct schema *s, const json_t *body, struct buf *to) {
    const char *key;
    json_t *value;
    unsigned n = 0;
    json_object_foreach((json_t *)body, key, value) {
        char quoted[80], question[80];
        struct nearest near = {.word = key};
        if (has_field(s, key))
            continue;
        if (++n > UNKNOWN_MAX) {
            buf_adds(to, "more fields that are not known were ignored\n");
            return;
        }
        for (unsigned i = 0; i < s->n; i++)
            nearest_offer(&near, s->fields[i].name);
        buf_addf(to, "the field %s is not known and was ignored%s\n",
                 log_quote(key, quoted, sizeof quoted),
                 nearest_ask(&near, question, sizeof question));
    }
}

/* Without a schema any object will do. */
static void check_object(struct check *c, const struct schema *s, const json_t *v,
                         const struct loc *at) {
    if (s && s->unchecked)
        return;
    if (!json_is_object(v)) {
        fault(c, at, &(struct fault){"model_attributes_type", msg_model, v});
        return;
    }
    for (unsigned i = 0; s && i < s->n; i++) {
        const struct field *f = &s->fields[i];
        const json_t *inner = json_object_get(v, f->name);
        struct loc here = {.up = at, .name = f->name};
        if (inner)
            check_field(c, f, inner, &here);
        else if (f->flags & FIELD_REQUIRED && !(f->unless && json_object_get(v, f->unless)))
            fault(c, &here, &(struct fault){"missing", "Field required", v});
    }
    if (s && !s->open)
        check_unknown(c, s, v, at);
}

unsigned fields_check(const struct schema *s, const json_t *body, struct jw *errors) {
    struct check c = {.errors = errors};
    check_object(&c, s, body, &loc_body);
    return c.faults;
}

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

static struct jw detail_begin(struct buf *reply) {
    struct jw j = JW_INIT(reply);
    jw_object(&j);
    jw_key(&j, "detail");
    jw_array(&j);
    return j;
}

static int detail_end(struct jw *j) {
    jw_array_end(j);
    jw_object_end(j);
    return -1;
}

/* These three answer with one fault of the whole body, and return -1. */
static int refuse_missing(struct buf *reply) {
    struct jw j = detail_begin(reply);
    write_fault(&j, &loc_body, &(struct fault){"missing", "Field required", json_null()});
    return detail_end(&j);
}

static int refuse_type(const char *text, size_t len, struct buf *reply) {
    struct jw j = detail_begin(reply);
    /* Ill-formed UTF-8 is replaced when it is written; more than what is quoted need not be copied.
     */
    size_t some = len < 2 * FIELDS_INPUT_MAX ? len : 2 * FIELDS_INPUT_MAX;
    json_auto_t *input = json_stringn_nocheck(text, some);
    write_fault(&j, &loc_body, &(struct fault){"model_attributes_type", msg_model, input});
    return detail_end(&j);
}

static int refuse_json(const char *text, const struct json_fault *f, struct buf *reply) {
    struct jw j = detail_begin(reply);
    AUTO_BUF ctx = BUF_INIT;
    struct jw why = JW_INIT(&ctx);
    json_auto_t *input = json_object();
    struct loc at = {.up = &loc_body, .index = count_characters(text, f->at)};
    jw_object(&why);
    jw_key_str(&why, "error", f->why);
    jw_object_end(&why);
    write_fault(&j, &at, &(struct fault){"json_invalid", "JSON decode error", input, ctx.data});
    return detail_end(&j);
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
    return s->open && !s->any_type; /* open ones are of contract 1 */
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
        buf_adds(reply, "{\"detail\":\"There was an error parsing the body\"}");
        return -1;
    }
    if (json_is_null(root)) /* the same to FastAPI as no body */
        return refuse_missing(reply);
    AUTO_BUF faults = BUF_INIT;
    struct jw j = detail_begin(&faults);
    if (fields_check(s, root, &j) > 0) {
        detail_end(&j);
        buf_add(reply, faults.data, faults.len);
        return -1;
    }
    *ret = json_incref(root);
    return 0;
}

void fields_too_high(const json_t *body, const char *name, int64_t most, struct buf *reply) {
    struct jw j = detail_begin(reply);
    struct check c = {.errors = &j};
    const struct field f = {.type = FIELD_INT, .max = most};
    struct loc at = {.up = &loc_body, .name = name};
    out_of_range(&c, &f, json_object_get(body, name), &at, false);
    detail_end(&j);
}

bool field_bool(const json_t *body, const char *name, bool fallback) {
    const json_t *v = json_object_get(body, name);
    int meaning = v ? bool_meaning(v) : -1;
    return meaning < 0 ? fallback : meaning;
}

int64_t field_int(const json_t *body, const char *name, int64_t fallback) {
    const json_t *v = json_object_get(body, name);
    return json_is_integer(v) ? json_integer_value(v) : fallback;
}

int64_t field_int_lax(const json_t *body, const char *name, int64_t fallback) {
    const json_t *v = json_object_get(body, name);
    int64_t n;
    return v && int_meaning(v, &n) == INT_GOOD ? n : fallback;
}

const char *field_str(const json_t *body, const char *name, const char *fallback) {
    const json_t *v = json_object_get(body, name);
    return json_is_string(v) ? json_string_value(v) : fallback;
}
