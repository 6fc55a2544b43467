/* See json.h.
 *
 * The writer needs no stack: whether a comma is due depends only on what came last, and "last was a
 * value or an end" is one flag. Strings are copied in runs; only what cannot stand as it is stops a
 * run.
 *
 * The reader looks at the nesting before jansson does, because jansson's own bound is fixed when it
 * is compiled and it recurses up to there. */

#include "base/json.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void before(struct jw *j) {
    if (j->comma)
        buf_addc(j->to, ',');
    j->comma = true;
}

static void open_with(struct jw *j, char c) {
    before(j);
    buf_addc(j->to, c);
    j->comma = false;
}

static void close_with(struct jw *j, char c) {
    buf_addc(j->to, c);
    j->comma = true;
}

void jw_object(struct jw *j) {
    open_with(j, '{');
}

void jw_object_end(struct jw *j) {
    close_with(j, '}');
}

void jw_array(struct jw *j) {
    open_with(j, '[');
}

void jw_array_end(struct jw *j) {
    close_with(j, ']');
}

void jw_key(struct jw *j, const char *key) {
    jw_str(j, key);
    buf_addc(j->to, ':');
    j->comma = false;
}

/* The well-formed sequences of UTF-8 by their first byte (Unicode, table 3-7): how long, and the
 * range of the second byte, which is where overlong forms and surrogates are told apart. */
struct utf8_lead {
    uint8_t len, low, high;
};

static struct utf8_lead utf8_lead(unsigned char c) {
    if (c < 0xc2 || c > 0xf4)
        return (struct utf8_lead){0};
    if (c < 0xe0)
        return (struct utf8_lead){2, 0x80, 0xbf};
    if (c < 0xf0)
        return (struct utf8_lead){3, c == 0xe0 ? 0xa0 : 0x80, c == 0xed ? 0x9f : 0xbf};
    return (struct utf8_lead){4, c == 0xf0 ? 0x90 : 0x80, c == 0xf4 ? 0x8f : 0xbf};
}

/* How many bytes of a sequence that does not start with ASCII belong together; *ret_good says
 * whether they are a character, or else the piece that one U+FFFD replaces. */
static size_t utf8_span(const unsigned char *p, size_t len, bool *ret_good) {
    struct utf8_lead lead = utf8_lead(p[0]);
    size_t n = 1;
    *ret_good = false;
    if (lead.len == 0)
        return 1;
    if (n < len && p[1] >= lead.low && p[1] <= lead.high)
        n++;
    while (n >= 2 && n < lead.len && n < len && (p[n] & 0xc0) == 0x80)
        n++;
    *ret_good = n == lead.len;
    return n;
}

#define UNIT 6u  /* bytes of \uXXXX */
#define RUN  64u /* of them, for which there is room at a time */

/* Not by printf: a text of millions of these would hold up everybody for seconds. */
static void write_unit(char *to, unsigned unit) {
    static const char digits[] = "0123456789abcdef";
    to[0] = '\\';
    to[1] = 'u';
    to[2] = digits[unit >> 12 & 15];
    to[3] = digits[unit >> 8 & 15];
    to[4] = digits[unit >> 4 & 15];
    to[5] = digits[unit & 15];
}

static void add_unit(struct buf *b, unsigned unit) {
    write_unit(buf_reserve(b, UNIT), unit);
    buf_commit(b, UNIT);
}

static size_t write_ascii(char *to, unsigned char c) {
    static const char letters[0x80] = {['"'] = '"',  ['\\'] = '\\', ['\b'] = 'b', ['\f'] = 'f',
                                       ['\n'] = 'n', ['\r'] = 'r',  ['\t'] = 't'};
    if (!letters[c]) {
        write_unit(to, c);
        return UNIT;
    }
    to[0] = '\\';
    to[1] = letters[c];
    return 2;
}

/* The character at p (n bytes) is well-formed; may it stand in a JSON string as it is? */
static bool is_plain_byte(const unsigned char *p, size_t n) {
    if (n == 1)
        return p[0] >= 0x20 && p[0] < 0x7f && p[0] != '"' && p[0] != '\\';
    if (n == 2)
        return p[0] != 0xc2 || p[1] >= 0xa0;
    return n != 3 || p[0] != 0xe2 || p[1] != 0x80 || (p[2] != 0xa8 && p[2] != 0xa9);
}

/* How many bytes of ASCII that may not stand as they are come together, one at least: hostile texts
 * have nothing else. */
static size_t escape_ascii(struct buf *b, const unsigned char *p, size_t len) {
    size_t n = 0, some = 0;
    char *to = NULL;
    for (; n < len && p[n] < 0x80 && !is_plain_byte(p + n, 1); n++) {
        if (n % RUN == 0) {
            if (n > 0)
                buf_commit(b, some);
            to = buf_reserve(b, (len - n < RUN ? len - n : RUN) * UNIT);
            some = 0;
        }
        some += write_ascii(to + some, p[n]);
    }
    buf_commit(b, some);
    return n;
}

/* One that is not ASCII. */
static void escape_one(struct buf *b, const unsigned char *p, size_t n) {
    if (n == 2)
        add_unit(b, p[1]);
    else
        add_unit(b, 0x2000u | (p[2] - 0x80u));
}

bool json_is_utf8(const char *text, size_t len) {
    const unsigned char *s = (const unsigned char *)text;
    bool good = true;
    for (size_t at = 0; good && at < len;)
        at += s[at] < 0x80 ? 1 : utf8_span(s + at, len - at, &good);
    return good;
}

#define EACH(byte) (~(uint64_t)0 / 255 * (byte))

/* Whether eight bytes may all stand as they are; now and then it says no where they may. */
static bool are_plain(const unsigned char *p) {
    uint64_t x, high = EACH(0x80);
    memcpy(&x, p, sizeof x);
    uint64_t quote = x ^ EACH('"'), slash = x ^ EACH('\\'), del = x ^ EACH(0x7f);
    uint64_t bad = (x - EACH(0x20)) | (quote - EACH(1)) | (slash - EACH(1)) | (del - EACH(1)) | x;
    return (bad & high) == 0;
}

void json_escape(struct buf *b, const char *text, size_t len) {
    const unsigned char *s = (const unsigned char *)text;
    size_t from = 0, n;
    buf_reserve(b, len + len / 32); /* as much as most texts become */
    for (size_t at = 0; at < len; at += n) {
        bool good = true;
        while (len - at >= 8 && are_plain(s + at)) /* most of most texts */
            at += 8;
        for (n = 1; at < len && is_plain_byte(s + at, 1); at++)
            ;
        if (at == len)
            break;
        if (s[at] >= 0x80)
            n = utf8_span(s + at, len - at, &good);
        if (s[at] >= 0x80 && good && is_plain_byte(s + at, n))
            continue;
        buf_add(b, s + from, at - from);
        if (s[at] < 0x80)
            n = escape_ascii(b, s + at, len - at);
        else if (good)
            escape_one(b, s + at, n);
        else
            buf_adds(b, "\xef\xbf\xbd");
        from = at + n;
    }
    buf_add(b, s + from, len - from);
}

void jw_strn(struct jw *j, const char *text, size_t len) {
    before(j);
    buf_addc(j->to, '"');
    json_escape(j->to, text, len);
    buf_addc(j->to, '"');
}

void jw_str(struct jw *j, const char *text) {
    if (text)
        jw_strn(j, text, strlen(text));
    else
        jw_null(j);
}

void jw_escaped(struct jw *j, const char *inside, size_t len) {
    before(j);
    buf_addc(j->to, '"');
    buf_add(j->to, inside, len);
    buf_addc(j->to, '"');
}

void jw_int(struct jw *j, int64_t v) {
    before(j);
    buf_addf(j->to, "%" PRId64, v);
}

void jw_uint(struct jw *j, uint64_t v) {
    before(j);
    buf_addf(j->to, "%" PRIu64, v);
}

void jw_real(struct jw *j, double v) {
    if (!isfinite(v)) {
        jw_null(j);
        return;
    }
    char digits[40];
    for (int precision = 15; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, v);
        if (strtod(digits, NULL) == v)
            break;
    }
    char *comma = strchr(digits, ','); /* a locale's decimal point */
    if (comma)
        *comma = '.';
    before(j);
    buf_adds(j->to, digits);
    if (!strpbrk(digits, ".e"))
        buf_adds(j->to, ".0");
}

void jw_bool(struct jw *j, bool v) {
    before(j);
    buf_adds(j->to, v ? "true" : "false");
}

void jw_null(struct jw *j) {
    before(j);
    buf_adds(j->to, "null");
}

void jw_raw(struct jw *j, const char *json, size_t len) {
    before(j);
    buf_add(j->to, json, len);
}

void jw_json(struct jw *j, const struct json_t *value, const char *otherwise) {
    char *text = value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    const char *it = text ? text : otherwise;
    jw_raw(j, it, strlen(it));
    free(text);
}

void jw_members(struct jw *j, const char *object, size_t len) {
    if (len <= 2) /* {} */
        return;
    before(j);
    buf_add(j->to, object + 1, len - 2);
}

void jw_key_str(struct jw *j, const char *key, const char *text) {
    jw_key(j, key);
    jw_str(j, text);
}

void jw_key_int(struct jw *j, const char *key, int64_t v) {
    jw_key(j, key);
    jw_int(j, v);
}

void jw_key_uint(struct jw *j, const char *key, uint64_t v) {
    jw_key(j, key);
    jw_uint(j, v);
}

void jw_key_real(struct jw *j, const char *key, double v) {
    jw_key(j, key);
    jw_real(j, v);
}

void jw_key_bool(struct jw *j, const char *key, bool v) {
    jw_key(j, key);
    jw_bool(j, v);
}

void jw_key_null(struct jw *j, const char *key) {
    jw_key(j, key);
    jw_null(j);
}

/* Where in the text a reader went wrong, in characters, both from 1. */
struct place {
    unsigned line, column;
};

static void advance(struct place *at, unsigned char c) {
    if (c == '\n')
        *at = (struct place){at->line + 1, 1};
    else if ((c & 0xc0) != 0x80)
        at->column++;
}

static struct place place_of(const char *text, size_t at) {
    struct place p = {1, 1};
    for (size_t i = 0; i < at; i++)
        advance(&p, (unsigned char)text[i]);
    return p;
}

/* Past a string that begins at `at`. */
static size_t skip_string(const char *text, size_t len, size_t at) {
    for (at++; at < len && text[at] != '"'; at++)
        at += text[at] == '\\';
    return at;
}

/* Brackets and commas outside strings; text that is no JSON at all may pass, jansson refuses it
 * afterwards. SECURITY: an empty object of two bytes takes jansson a hundred times as many. */
static int check_shape(const char *text, size_t len, unsigned most, struct err *e) {
    unsigned depth = 0, values = 0;
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (c == '"') {
            i = skip_string(text, len, i);
            continue;
        }
        values += c == ',' || c == '[' || c == '{';
        if (c == '[' || c == '{')
            depth++;
        else if ((c == ']' || c == '}') && depth > 0)
            depth--;
        if (depth <= most && values <= JSON_VALUES_MAX)
            continue;
        struct place at = place_of(text, i);
        if (depth <= most)
            return err_user(e, "bad_json", "JSON has more than %u values: line %u, column %u",
                            JSON_VALUES_MAX, at.line, at.column);
        return err_user(e, "bad_json",
                        "JSON is nested more than %u levels deep: line %u, column %u", most,
                        at.line, at.column);
    }
    return 0;
}

int json_read(const char *text, size_t len, unsigned depth, struct json_t **ret, struct err *e) {
    if (check_shape(text, len, depth, e) < 0)
        return -1;
    json_error_t why;
    json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
    if (!root) {
        /* The reason quotes the input: keep it to one clean line. */
        for (char *p = why.text; *p; p++)
            if ((unsigned char)*p < 0x20 || *p == 0x7f)
                *p = '?';
        return err_user(e, "bad_json", "not valid JSON: %s: line %d, column %d", why.text,
                        why.line > 0 ? why.line : 1, why.column > 0 ? why.column : 1);
    }
    *ret = root;
    return 0;
}
