/* See openapi_schema.h. */

#include "http/openapi_schema.h"

#include "base/buf.h"

#include <stdlib.h>
#include <string.h>

#define ALONE_DEPTH 8

/* What FIELD_JSON is: named, so that generators of types have a word for it. TypeScript takes no
 * array type that refers to itself, as an object type may, so arrays in arrays have names of their
 * own, and what is in the third is not said. */
#define JSON_WITH(items)                                                                           \
    "\"anyOf\":[{\"type\":\"null\"},{\"type\":\"boolean\"},{\"type\":\"number\"},{\"type\":"       \
    "\"string\"},"                                                                                 \
    "{\"type\":\"object\",\"additionalProperties\":{\"$ref\":\"#/components/schemas/"              \
    "JsonValue\"}},"                                                                               \
    "{\"type\":\"array\",\"items\":{" items "}}]}"
#define JSON_ARRAY_OF(name) JSON_WITH("\"$ref\":\"#/components/schemas/" name "\"")
static const struct schema json_schema = {.name = "JsonValue"};
static const struct schema json_item = {.name = "JsonItem"}, json_inner = {.name = "JsonInner"};
static const struct {
    const struct schema *schema;
    const char *json;
} json_texts[] = {
    {&json_schema,
     "{\"title\":\"JsonValue\",\"description\":\"any JSON\"," JSON_ARRAY_OF("JsonItem")},
    {&json_item, "{\"title\":\"JsonItem\",\"description\":\"any JSON, in an array\"," JSON_ARRAY_OF(
                     "JsonInner")},
    {&json_inner,
     "{\"title\":\"JsonInner\",\"description\":\"any JSON, in an array of arrays\"," JSON_WITH("")},
};

/* ---- which there are ---- */

void schemas_add(struct schemas *list, const struct schema *s) {
    if (!s)
        return;
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->all[i]->name, s->name) == 0)
            return;
    list->all = xrealloc(list->all, (list->n + 1) * sizeof(*list->all));
    list->all[list->n++] = s;
}

static void add_field(struct schemas *list, const struct field *f) {
    bool items = f->type == FIELD_LIST || f->type == FIELD_MAP;
    enum field_type type = items ? f->items : f->type;
    if (f->of)
        schemas_add(list, f->of);
    else if (type == FIELD_OBJECT || type == FIELD_ANY || type == FIELD_JSON)
        schemas_add(list, &json_schema);
}

void schemas_add_fields(struct schemas *list, const struct schema *s) {
    for (; s; s = s->with)
        for (unsigned i = 0; i < s->n; i++)
            add_field(list, &s->fields[i]);
}

/* The list grows while it is walked, so tables that refer to each other are no trouble. */
void schemas_complete(struct schemas *list) {
    for (size_t i = 0; i < list->n; i++) {
        const struct schema *s = list->all[i];
        if (s == &json_schema) {
            schemas_add(list, &json_item);
            schemas_add(list, &json_inner);
        }
        schemas_add_fields(list, s);
        if (s->value)
            add_field(list, s->value);
        for (const struct schema *const *one = s->one_of; one && *one; one++)
            schemas_add(list, *one);
    }
}

void schemas_done(struct schemas *list) {
    free(list->all);
    *list = (struct schemas){0};
}

/* ---- as JSON ---- */

void schema_write_ref(struct jw *j, const struct schema *s) {
    AUTO_BUF path = BUF_INIT;
    buf_addf(&path, "#/components/schemas/%s", s->name);
    jw_key_str(j, "$ref", path.data);
}

static void write_inside(struct jw *j, const struct schemas *list, const struct schema *s);

/* In the schema that is open: all of that table's, or where it is. */
static void write_table(struct jw *j, const struct schemas *list, const struct schema *s) {
    struct schemas within = *list;
    if (!list->alone) {
        schema_write_ref(j, s);
        return;
    }
    within.alone--;
    if (within.alone > 0 && s != &json_schema)
        write_inside(j, &within, s);
}

static void write_bounds(struct jw *j, const struct field *f, const char *min, const char *max) {
    if (f->flags & FIELD_MIN)
        jw_key_int(j, min, f->min);
    if (f->flags & FIELD_MAX)
        jw_key_int(j, max, f->max);
}

static void write_words(struct jw *j, const char *const *words) {
    if (!words || !words[0])
        return;
    if (!words[1]) {
        jw_key_str(j, "const", words[0]);
        return;
    }
    jw_key(j, "enum");
    jw_array(j);
    for (size_t i = 0; words[i]; i++)
        jw_str(j, words[i]);
    jw_array_end(j);
}

/* The inside of the schema of a string. */
static void write_string(struct jw *j, const struct schemas *list, const struct field *f) {
    if (f->flags & FIELD_OR_INT) {
        static const char either[] = "[\"string\",\"integer\"]";
        jw_key(j, "type");
        jw_raw(j, either, strlen(either));
    } else {
        jw_key_str(j, "type", "string");
    }
    if (f->flags & FIELD_FILE)
        jw_key_str(j, "format", "binary");
    write_words(j, f->flags & FIELD_CODE ? list->codes : f->words);
}

static void write_inner(struct jw *j, const struct schemas *list, const char *key,
                        const struct field *f) {
    const struct field item = {
        .type = f->items, .flags = f->flags & FIELD_OR_INT, .words = f->words};
    jw_key(j, key);
    jw_object(j);
    if (f->of)
        write_table(j, list, f->of);
    else
        schema_write_type(j, list, &item);
    jw_object_end(j);
}

/* Of one whose members nobody knows before. */
static void write_any_object(struct jw *j, const struct schemas *list) {
    jw_key_str(j, "type", "object");
    jw_key(j, "additionalProperties");
    jw_object(j);
    write_table(j, list, &json_schema);
    jw_object_end(j);
}

void schema_write_type(struct jw *j, const struct schemas *list, const struct field *f) {
    switch (f->type) {
    case FIELD_STRING:
        write_string(j, list, f);
        break;
    case FIELD_INT:
    case FIELD_REAL:
        jw_key_str(j, "type", f->type == FIELD_INT ? "integer" : "number");
        write_bounds(j, f, "minimum", "maximum");
        break;
    case FIELD_BOOL:
        jw_key_str(j, "type", "boolean");
        break;
    case FIELD_LIST:
        jw_key_str(j, "type", "array");
        write_inner(j, list, "items", f);
        write_bounds(j, f, "minItems", "maxItems");
        break;
    case FIELD_MAP:
        jw_key_str(j, "type", "object");
        write_inner(j, list, "additionalProperties", f);
        write_bounds(j, f, "minProperties", "maxProperties");
        break;
    case FIELD_OBJECT:
        if (f->of)
            write_table(j, list, f->of);
        else
            write_any_object(j, list);
        break;
    case FIELD_ANY:
    case FIELD_JSON:
        write_table(j, list, f->of ? f->of : &json_schema);
        break;
    }
}

void schema_write_default(struct jw *j, const struct field *f) {
    if (!f->fallback)
        return;
    jw_key(j, "default");
    jw_raw(j, f->fallback, strlen(f->fallback));
}

/* The inside of a field's schema. */
static void write_value(struct jw *j, const struct schemas *list, const struct field *f) {
    if (f->flags & FIELD_NULLABLE) {
        jw_key(j, "anyOf");
        jw_array(j);
        jw_object(j);
        schema_write_type(j, list, f);
        jw_object_end(j);
        jw_object(j);
        jw_key_str(j, "type", "null");
        jw_object_end(j);
        jw_array_end(j);
    } else {
        schema_write_type(j, list, f);
    }
    if (f->help)
        jw_key_str(j, "description", f->help);
    schema_write_default(j, f);
}

static void write_properties(struct jw *j, const struct schemas *list, const struct schema *s) {
    jw_key(j, "properties");
    jw_object(j);
    for (; s; s = s->with) {
        for (unsigned i = 0; i < s->n; i++) {
            jw_key(j, s->fields[i].name);
            jw_object(j);
            write_value(j, list, &s->fields[i]);
            jw_object_end(j);
        }
    }
    jw_object_end(j);
}

static void write_required(struct jw *j, const struct schema *s) {
    bool any = false;
    for (; s; s = s->with) {
        for (unsigned i = 0; i < s->n; i++) {
            if (!(s->fields[i].flags & FIELD_REQUIRED) || s->fields[i].unless)
                continue;
            if (!any) {
                jw_key(j, "required");
                jw_array(j);
            }
            any = true;
            jw_str(j, s->fields[i].name);
        }
    }
    if (any)
        jw_array_end(j);
}

static void write_choice(struct jw *j, const struct schemas *list, const struct schema *s) {
    jw_key(j, "oneOf");
    jw_array(j);
    for (const struct schema *const *one = s->one_of; *one; one++) {
        jw_object(j);
        write_table(j, list, *one);
        jw_object_end(j);
    }
    jw_array_end(j);
}

static void write_inside(struct jw *j, const struct schemas *list, const struct schema *s) {
    if (!list->alone)
        jw_key_str(j, "title", s->name);
    if (s->help)
        jw_key_str(j, "description", s->help);
    if (s->one_of) {
        write_choice(j, list, s);
    } else if (s->value) {
        write_value(j, list, s->value);
    } else {
        jw_key_str(j, "type", "object");
        write_properties(j, list, s);
        write_required(j, s);
        if (!s->open)
            jw_key_bool(j, "additionalProperties", false);
    }
}

static void write_schema(struct jw *j, const struct schemas *list, const struct schema *s) {
    jw_object(j);
    write_inside(j, list, s);
    jw_object_end(j);
}

void schema_write_alone(struct jw *j, const struct schema *s) {
    const struct schemas list = {.alone = ALONE_DEPTH};
    write_schema(j, &list, s);
}

/* Of those that no table can say; NULL: a table does. */
static const char *json_text_of(const struct schema *s) {
    for (size_t i = 0; i < sizeof json_texts / sizeof *json_texts; i++)
        if (json_texts[i].schema == s)
            return json_texts[i].json;
    return NULL;
}

void schemas_write(struct jw *j, const struct schemas *list) {
    for (size_t i = 0; i < list->n; i++) {
        const char *text = json_text_of(list->all[i]);
        jw_key(j, list->all[i]->name);
        if (text)
            jw_raw(j, text, strlen(text));
        else
            write_schema(j, list, list->all[i]);
    }
}
