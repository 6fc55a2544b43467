/* See said.h. */

#include "engine/said/said.h"

#include "base/json.h"

#include <jansson.h>
#include <string.h>

#define SHORT      4096 /* bytes of a string that is kept as it is */
#define PROMPT_MAX (64u << 10)
#define LINE_COST  64u /* bytes that each line of a traceback counts besides: it may be empty */

/* Values by MIME type. */
static void put_bundle(struct said *s, struct jw *j, json_t *bundle) {
    const char *mime;
    json_t *value;
    unsigned n = 0;
    jw_object(j);
    json_object_foreach(bundle, mime, value) {
        if (n == SAID_MIMES_MAX || strlen(mime) > SHORT) {
            s->cut = true;
            continue;
        }
        n++;
        jw_key(j, mime);
        size_t at = s->text.len;
        jw_json(j, value, "null");
        if (json_is_string(value) && strcmp(mime, "text/plain") == 0) {
            s->plain_at = at;
            s->plain_len = s->text.len - at;
        }
    }
    jw_object_end(j);
}

static void read_shown(struct said *s, json_t *message) {
    const json_t *metadata = json_object_get(message, "metadata");
    struct jw j = JW_INIT(&s->text);
    jw_object(&j);
    jw_key(&j, "data");
    put_bundle(s, &j, json_object_get(message, "data"));
    jw_key(&j, "metadata");
    bool fits = json_is_object(metadata) && json_object_size(metadata) <= SAID_MIMES_MAX;
    jw_json(&j, fits ? metadata : NULL, "{}");
}

/* As much of it as fits into what is left. */
static void put_some(struct jw *j, const json_t *text, size_t *left) {
    const char *data = json_is_string(text) ? json_string_value(text) : "";
    size_t len = json_is_string(text) ? json_string_length(text) : 0;
    size_t n = len < *left ? len : *left;
    while (n < len && n > 0 && ((unsigned char)data[n] & 0xc0) == 0x80)
        n--;
    jw_strn(j, data, n);
    *left -= n;
}

static void read_error(struct said *s, json_t *message) {
    const json_t *name = json_object_get(message, "name"), *line;
    const json_t *lines = json_object_get(message, "traceback");
    size_t i, short_left = SHORT, value_left = SAID_ERROR_MAX, left = SAID_ERROR_MAX;
    struct jw j = JW_INIT(&s->text);
    jw_object(&j);
    jw_key(&j, "name");
    if (json_is_string(name))
        put_some(&j, name, &short_left);
    else
        jw_str(&j, "Exception");
    jw_key(&j, "value");
    put_some(&j, json_object_get(message, "value"), &value_left);
    jw_key(&j, "traceback");
    jw_array(&j);
    json_array_foreach(lines, i, line) {
        if (!json_is_string(line) || left <= LINE_COST)
            continue;
        left -= LINE_COST;
        put_some(&j, line, &left);
    }
    jw_array_end(&j);
    jw_object_end(&j);
}

static void read_value(struct said *s, json_t *message) {
    const json_t *value = json_object_get(message, "value");
    struct jw j = JW_INIT(&s->text);
    jw_json(&j, json_is_object(value) ? value : NULL, "{}");
}

static void read_result(struct said *s, json_t *message) {
    struct jw j = JW_INIT(&s->text);
    jw_json(&j, json_object_get(message, "result"), "null");
}

static const struct {
    const char *kind;
    void (*fn)(struct said *s, json_t *message);
} kinds[] = {
    {"result", read_shown}, {"display", read_shown}, {"error", read_error},
    {"comm", read_value},   {"payload", read_value}, {"expressions", read_value},
    {"reply", read_result},
};

static void cut_prompt(json_t *rest, const json_t *prompt) {
    AUTO_BUF text = BUF_INIT;
    struct jw j = JW_INIT(&text);
    size_t left = PROMPT_MAX;
    if (!json_is_string(prompt))
        return;
    put_some(&j, prompt, &left);
    json_object_set_new(rest, "prompt", json_loadb(text.data, text.len, JSON_DECODE_ANY, NULL));
}

/* What is short, of the members that are known. */
static json_t *rest_of(const json_t *message) {
    static const char *const names[] = {
        "ev",   "id",   "go",       "ok",     "error",           "display_id", "update", "cut",
        "wait", "rest", "password", "status", "execution_count", "exit_code",  "leaves",
    };
    json_t *rest = json_object();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        json_t *value = json_object_get(message, names[i]);
        if (!value || json_is_object(value) || json_is_array(value) ||
            json_string_length(value) > SHORT)
            continue;
        json_object_set(rest, names[i], value);
    }
    cut_prompt(rest, json_object_get(message, "prompt"));
    return rest;
}

int said_read(const char *json, size_t len, struct said *ret, struct err *e) {
    json_auto_t *message = NULL;
    if (json_read(json, len, JSON_DEPTH_MAX, &message, e) < 0)
        return -1;
    *ret = (struct said){.rest = rest_of(message), .text = BUF_INIT};
    const char *kind = said_str(ret, "ev");
    for (size_t i = 0; kind && i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].kind, kind) == 0)
            kinds[i].fn(ret, message);
    }
    return 0;
}

void said_done(struct said *s) {
    json_decref(s->rest);
    buf_done(&s->text);
    *s = (struct said){.text = BUF_INIT};
}

const char *said_str(const struct said *s, const char *name) {
    return json_string_value(json_object_get(s->rest, name));
}

bool said_true(const struct said *s, const char *name) {
    return json_is_true(json_object_get(s->rest, name));
}
