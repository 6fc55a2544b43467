/* See fields.h. The check walks table and tree together; it goes no deeper than the tree, so 64
 * levels.
 *
 * SECURITY: the number of faults is bounded, and what each quotes (field_fault.c), so that a large
 * body cannot make a much larger reply. */

#include "http/fields.h"

#include "base/buf.h"
#include "base/log.h"
#include "base/nearest.h"
#include "http/field_fault.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct check {
    struct jw *errors; /* borrowed */
    unsigned faults;
};

static void fault(struct check *c, const struct field_loc *at, const struct field_fault *f) {
    if (c->faults >= FIELDS_FAULTS_MAX)
        return;
    c->faults++;
    field_fault_write(c->errors, at, f);
}

/* What a lax boolean means: 0 or 1; -1 when it has the form of a boolean but means nothing, -2 when
 * it has not even that. */
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

static void check_bool(struct check *c, const json_t *v, const struct field_loc *at) {
    int meaning = bool_meaning(v);
    if (meaning == -1)
        fault(c, at,
              &(struct field_fault){
                  "bool_parsing", "Input should be a valid boolean, unable to interpret input", v});
    else if (meaning == -2)
        fault(c, at, &(struct field_fault){"bool_type", "Input should be a valid boolean", v});
}

/* 'a', 'b' or 'c' */
static void add_words(struct buf *b, const char *const *words) {
    for (size_t i = 0; words[i]; i++)
        buf_addf(b, "%s'%s'", i == 0 ? "" : words[i + 1] ? ", " : " or ", words[i]);
}

static void check_words(struct check *c, const char *const *words, const json_t *v,
                        const struct field_loc *at) {
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
    fault(c, at, &(struct field_fault){"literal_error", msg.data, v, ctx.data});
}

static void too_long(struct check *c, const json_t *v, const struct field_loc *at, size_t most) {
    AUTO_BUF msg = BUF_INIT;
    AUTO_BUF ctx = BUF_INIT;
    struct jw j = JW_INIT(&ctx);
    const char *kind = json_is_string(v) ? "String" : "Value";
    buf_addf(&msg, "%s should have at most %zu bytes", kind, most);
    jw_object(&j);
    jw_key_uint(&j, "max_length", most);
    jw_object_end(&j);
    fault(c, at, &(struct field_fault){"string_too_long", msg.data, v, ctx.data});
}

/* How much a handler has to work on; what is beyond `most` is not counted to its end. */
static size_t size_of(const json_t *v, size_t most) {
    size_t sum = 16 + json_string_length(v), i;
    const char *key;
    json_t *inner;
    if (json_is_object(v)) {
        json_object_foreach((json_t *)v, key, inner) {
            if (sum > most)
                break;
            sum += strlen(key) + size_of(inner, most - sum);
        }
    }
    for (i = 0; i < json_array_size(v) && sum <= most; i++)
        sum += size_of(json_array_get(v, i), most - sum);
    return sum;
}

/* SECURITY: see FIELDS_TEXT_MAX. */
static bool is_too_long(struct check *c, const struct field *f, const json_t *v,
                        const struct field_loc *at) {
    bool text = json_is_string(v), own = f->type == FIELD_STRING || f->type == FIELD_OBJECT;
    size_t most = text ? FIELDS_TEXT_MAX : FIELDS_JSON_MAX;
    if (own && f->flags & FIELD_MAX)
        most = (size_t)f->max;
    if (f->flags & FIELD_LONG || (f->of && f->type != FIELD_ANY) ||
        (text ? json_string_length(v) : size_of(v, most)) <= most)
        return false;
    too_long(c, v, at, most);
    return true;
}

static void check_string(struct check *c, const struct field *f, const json_t *v,
                         const struct field_loc *at) {
    if (f->words)
        check_words(c, f->words, v, at);
    else if (!json_is_string(v))
        fault(c, at, &(struct field_fault){"string_type", "Input should be a valid string", v});
    else if (f->wrong && f->wrong(v)) {
        AUTO_BUF msg = BUF_INIT;
        AUTO_BUF ctx = BUF_INIT;
        struct jw j = JW_INIT(&ctx);
        buf_addf(&msg, "Value error, %s", f->wrong(v));
        jw_object(&j);
        jw_key(&j, "error");
        jw_object(&j);
        jw_object_end(&j);
        jw_object_end(&j);
        fault(c, at, &(struct field_fault){"value_error", msg.data, v, ctx.data});
    }
}

static void out_of_range(struct check *c, const struct field *f, const json_t *v,
                         const struct field_loc *at, bool low) {
    AUTO_BUF msg = BUF_INIT;
    AUTO_BUF ctx = BUF_INIT;
    struct jw j = JW_INIT(&ctx);
    int64_t bound = low ? f->min : f->max;
    buf_addf(&msg, "Input should be %s than or equal to %" PRId64, low ? "greater" : "less", bound);
    /* pydantic keeps the bound of a real number as a real number, but prints it short */
    jw_object(&j);
    if (f->type == FIELD_REAL)
        jw_key_real(&j, low ? "ge" : "le", (double)bound);
    else
        jw_key_int(&j, low ? "ge" : "le", bound);
    jw_object_end(&j);
    fault(c, at,
          &(struct field_fault){low ? "greater_than_equal" : "less_than_equal", msg.data, v,
                                ctx.data});
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
                      const struct field_loc *at) {
    static const struct field_fault faults[] = {
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
        fault(c, at, &(struct field_fault){faults[form].type, faults[form].msg, v});
    else if (f->flags & FIELD_MIN && n < f->min)
        out_of_range(c, f, v, at, true);
    else if (f->flags & FIELD_MAX && n > f->max)
        out_of_range(c, f, v, at, false);
}

static void check_real(struct check *c, const struct field *f, const json_t *v,
                       const struct field_loc *at) {
    if (!json_is_number(v))
        fault(c, at, &(struct field_fault){"float_type", "Input should be a valid number", v});
    else if (f->flags & FIELD_MIN && json_number_value(v) < (double)f->min)
        out_of_range(c, f, v, at, true);
    else if (f->flags & FIELD_MAX && json_number_value(v) > (double)f->max)
        out_of_range(c, f, v, at, false);
}

/* Whether the number of items is allowed. If not, the items are not looked at. */
static bool check_count(struct check *c, const struct field *f, const json_t *v,
                        const struct field_loc *at) {
    int64_t n = (int64_t)(f->type == FIELD_LIST ? json_array_size(v) : json_object_size(v));
    bool few = f->flags & FIELD_MIN && n < f->min;
    bool many = f->flags & FIELD_MAX && n > f->max;
    if (!few && !many)
        return true;
    const char *kind = f->type == FIELD_LIST ? "List" : "Dictionary";
    int64_t bound = few ? f->min : f->max;
    AUTO_BUF msg = BUF_INIT;
    AUTO_BUF ctx = BUF_INIT;
    struct jw j = JW_INIT(&ctx);
    buf_addf(&msg, "%s should have at %s %" PRId64 " item%s after validation, not %" PRId64, kind,
             few ? "least" : "most", bound, bound == 1 ? "" : "s", n);
    jw_object(&j);
    jw_key_str(&j, "field_type", kind);
    jw_key_int(&j, few ? "min_length" : "max_length", bound);
    jw_key_int(&j, "actual_length", n);
    jw_object_end(&j);
    fault(c, at, &(struct field_fault){few ? "too_short" : "too_long", msg.data, v, ctx.data});
    return false;
}

static void check_object(struct check *c, const struct schema *s, const json_t *v,
                         const struct field_loc *at);

static void check_list(struct check *c, const struct field *f, const json_t *v,
                       const struct field_loc *at) {
    if (!json_is_array(v)) {
        fault(c, at, &(struct field_fault){"list_type", "Input should be a valid list", v});
        return;
    }
    if (!check_count(c, f, v, at))
        return;
    for (size_t i = 0; i < json_array_size(v) && c->faults < FIELDS_FAULTS_MAX; i++) {
        struct field_loc item = {.up = at, .index = i};
        if (f->of)
            check_object(c, f->of, json_array_get(v, i), &item);
        else
            check_string(c, f, json_array_get(v, i), &item);
    }
}

static void check_map(struct check *c, const struct field *f, const json_t *v,
                      const struct field_loc *at) {
    const char *key;
    json_t *inner;
    if (!json_is_object(v)) {
        fault(c, at, &(struct field_fault){"dict_type", "Input should be a valid dictionary", v});
        return;
    }
    if (!check_count(c, f, v, at))
        return;
    json_object_foreach((json_t *)v, key, inner) {
        if (c->faults >= FIELDS_FAULTS_MAX)
            return;
        check_string(c, f, inner, &(struct field_loc){.up = at, .name = key});
    }
}

static void check_field(struct check *c, const struct field *f, const json_t *v,
                        const struct field_loc *at) {
    if ((json_is_null(v) && f->flags & FIELD_NULLABLE) || is_too_long(c, f, v, at))
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
    case FIELD_ANY:
    case FIELD_JSON:
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
                          const struct field_loc *at) {
    const char *key;
    json_t *inner;
    json_object_foreach((json_t *)v, key, inner) {
        if (c->faults >= FIELDS_FAULTS_MAX)
            return;
        if (!has_field(s, key))
            fault(
                c, &(struct field_loc){.up = at, .name = key},
                &(struct field_fault){"extra_forbidden", "Extra inputs are not permitted", inner});
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

static void drop_in(const struct field *f, json_t *v) {
    if (f->type == FIELD_OBJECT)
        fields_drop_unknown(f->of, v);
    for (size_t i = 0; f->type == FIELD_LIST && f->of && i < json_array_size(v); i++)
        fields_drop_unknown(f->of, json_array_get(v, i));
}

void fields_drop_unknown(const struct schema *s, json_t *body) {
    const char *key;
    json_t *value;
    void *next;
    unsigned n = 0;
    if (!s || s->unchecked || !json_is_object(body))
        return;
    json_object_foreach_safe(body, next, key, value) {
        if (has_field(s, key))
            continue;
        if (++n > UNKNOWN_MAX + 1)
            json_object_del(body, key);
        else
            json_object_set_new(body, key, json_null());
    }
    for (unsigned i = 0; i < s->n; i++)
        drop_in(&s->fields[i], json_object_get(body, s->fields[i].name));
}

/* Without a schema any object will do. */
static void check_object(struct check *c, const struct schema *s, const json_t *v,
                         const struct field_loc *at) {
    if (s && s->unchecked)
        return;
    if (!json_is_object(v)) {
        fault(c, at, &(struct field_fault){"model_attributes_type", field_not_an_object, v});
        return;
    }
    for (unsigned i = 0; s && i < s->n; i++) {
        const struct field *f = &s->fields[i];
        const json_t *inner = json_object_get(v, f->name);
        struct field_loc here = {.up = at, .name = f->name};
        if (inner)
            check_field(c, f, inner, &here);
        else if (f->flags & FIELD_REQUIRED && !(f->unless && json_object_get(v, f->unless)))
            fault(c, &here, &(struct field_fault){"missing", "Field required", v});
    }
    if (s && !s->open)
        check_unknown(c, s, v, at);
}

unsigned fields_check(const struct schema *s, const json_t *body, struct jw *errors) {
    struct check c = {.errors = errors};
    check_object(&c, s, body, &field_loc_body);
    return c.faults;
}

struct jw fields_detail_begin(struct buf *reply) {
    struct jw j = JW_INIT(reply);
    jw_object(&j);
    jw_key(&j, "detail");
    jw_array(&j);
    return j;
}

int fields_detail_end(struct jw *j) {
    jw_array_end(j);
    jw_object_end(j);
    return -1;
}

void fields_too_high(const json_t *body, const char *name, int64_t most, struct buf *reply) {
    struct jw j = fields_detail_begin(reply);
    struct check c = {.errors = &j};
    const struct field f = {.type = FIELD_INT, .max = most};
    struct field_loc at = {.up = &field_loc_body, .name = name};
    out_of_range(&c, &f, json_object_get(body, name), &at, false);
    fields_detail_end(&j);
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
