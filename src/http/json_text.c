/* See json_text.h. The scanner reads the text once without recursion: it bounds the depth before
 * jansson recurses into it, and it finds the first fault of a broken document with the words and
 * the place that CPython's json module would give. Then jansson builds the tree. */

#include "http/json_text.h"

#include "base/json.h"
#include "http/fields.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* The text of a document, read as CPython's scanner (3.11) reads it. What Python would take but we
 * do not is remembered and read on, because a fault in Python's own terms further on is the one
 * that a client of the original service would see. */
struct scan {
    const char *s; /* borrowed */
    size_t len, at;
    const char *why, *ours; /* NULL: none */
    size_t why_at, ours_at; /* in bytes */
    uint64_t objects;       /* bit n: level n is an object, not an array */
    unsigned depth;
    unsigned values; /* each takes a hundred times its bytes in memory when it is parsed */
};

_Static_assert(JSON_DEPTH_MAX <= 64, "one bit of scan.objects per level");

static bool scan_fail(struct scan *c, const char *why, size_t at) {
    c->why = why;
    c->why_at = at;
    return false;
}

static void scan_dislike(struct scan *c, const char *why, size_t at) {
    if (c->ours)
        return;
    c->ours = why;
    c->ours_at = at;
}

static bool scan_is(const struct scan *c, char want) {
    return c->at < c->len && c->s[c->at] == want;
}

static void scan_space(struct scan *c) {
    while (scan_is(c, ' ') || scan_is(c, '\t') || scan_is(c, '\n') || scan_is(c, '\r'))
        c->at++;
}

static bool scan_digits(struct scan *c) {
    size_t from = c->at;
    while (c->at < c->len && c->s[c->at] >= '0' && c->s[c->at] <= '9')
        c->at++;
    return c->at > from;
}

static bool scan_word(struct scan *c, const char *word) {
    size_t n = strlen(word);
    if (c->len - c->at < n || memcmp(c->s + c->at, word, n) != 0)
        return false;
    c->at += n;
    return true;
}

/* The four hexadecimal digits of an escape whose backslash is at `at`, or -1. As in CPython, an
 * escape that ends the text is none: its string is not closed anyway. */
static int hex_escape(const struct scan *c, size_t at) {
    int v = 0;
    if (c->len - at < 7 || c->s[at] != '\\' || c->s[at + 1] != 'u')
        return -1;
    for (size_t i = at + 2; i < at + 6; i++) {
        char digit = c->s[i];
        if (digit >= '0' && digit <= '9')
            v = v * 16 + digit - '0';
        else if ((digit | 32) >= 'a' && (digit | 32) <= 'f')
            v = v * 16 + (digit | 32) - 'a' + 10;
        else
            return -1;
    }
    return v;
}

static bool scan_hex_escape(struct scan *c) {
    int v = hex_escape(c, c->at);
    if (v < 0)
        return scan_fail(c, "Invalid \\uXXXX escape", c->at + 1);
    if (v == 0)
        scan_dislike(c, "NUL is not allowed in strings", c->at);
    if (v >= 0xd800 && v <= 0xdbff) {
        int low = hex_escape(c, c->at + 6);
        if (low >= 0xdc00 && low <= 0xdfff)
            c->at += 6;
        else
            scan_dislike(c, "Surrogate without its other half", c->at);
    } else if (v >= 0xdc00 && v <= 0xdfff) {
        scan_dislike(c, "Surrogate without its other half", c->at);
    }
    c->at += 6;
    return true;
}

static bool scan_escape(struct scan *c) {
    if (c->at + 1 == c->len) { /* the string is not closed: its own message */
        c->at++;
        return true;
    }
    if (c->s[c->at + 1] == 'u')
        return scan_hex_escape(c);
    if (c->s[c->at + 1] == '\0' || !strchr("\"\\/bfnrt", c->s[c->at + 1]))
        return scan_fail(c, "Invalid \\escape", c->at);
    c->at += 2;
    return true;
}

static bool scan_string(struct scan *c) {
    size_t begin = c->at++;
    while (c->at < c->len) {
        unsigned char b = (unsigned char)c->s[c->at];
        if (b < 0x20)
            return scan_fail(c, "Invalid control character at", c->at);
        if (b == '\\') {
            if (!scan_escape(c))
                return false;
            continue;
        }
        c->at++;
        if (b == '"')
            return true;
    }
    return scan_fail(c, "Unterminated string starting at", begin);
}

/* As much as is a number: what follows "1" in "1." is the next one's fault, as in CPython. */
static bool scan_number(struct scan *c) {
    size_t begin = c->at;
    if (scan_is(c, '-'))
        c->at++;
    if (scan_is(c, '0'))
        c->at++;
    else if (!scan_digits(c))
        return scan_fail(c, "Expecting value", begin);
    size_t good = c->at;
    if (scan_is(c, '.')) {
        c->at++;
        if (!scan_digits(c))
            c->at = good;
        good = c->at;
    }
    if (scan_is(c, 'e') || scan_is(c, 'E')) {
        c->at++;
        if (scan_is(c, '-') || scan_is(c, '+'))
            c->at++;
        if (!scan_digits(c))
            c->at = good;
    }
    return true;
}

/* A value that holds no others. */
static bool scan_scalar(struct scan *c) {
    size_t begin = c->at;
    if (scan_is(c, '"'))
        return scan_string(c);
    if (scan_word(c, "null") || scan_word(c, "true") || scan_word(c, "false"))
        return true;
    if (scan_word(c, "NaN") || scan_word(c, "Infinity") || scan_word(c, "-Infinity")) {
        scan_dislike(c, "NaN and Infinity are not JSON", begin);
        return true;
    }
    return scan_number(c);
}

/* A key and its colon, up to where the value begins. */
static bool scan_key(struct scan *c) {
    if (!scan_is(c, '"'))
        return scan_fail(c, "Expecting property name enclosed in double quotes", c->at);
    if (!scan_string(c))
        return false;
    scan_space(c);
    if (!scan_is(c, ':'))
        return scan_fail(c, "Expecting ':' delimiter", c->at);
    c->at++;
    scan_space(c);
    return true;
}

static bool in_object(const struct scan *c) {
    return c->depth > 0 && c->objects >> (c->depth - 1) & 1;
}

/* At a bracket; *ret_empty when it is closed at once, otherwise the next thing is a value. */
static bool scan_open(struct scan *c, bool *ret_empty) {
    bool object = scan_is(c, '{');
    if (c->depth == JSON_DEPTH_MAX)
        return scan_fail(c, "More than 64 levels deep", c->at);
    c->objects = (c->objects & ~(UINT64_C(1) << c->depth)) | (uint64_t)object << c->depth;
    c->depth++;
    c->at++;
    scan_space(c);
    *ret_empty = scan_is(c, object ? '}' : ']');
    return *ret_empty || !object || scan_key(c);
}

/* After a value: closes what ends here. *ret_end at the end of the document, otherwise the next
 * thing is a value. */
static bool scan_after(struct scan *c, bool *ret_end) {
    *ret_end = false;
    for (scan_space(c); c->depth > 0; scan_space(c)) {
        if (scan_is(c, in_object(c) ? '}' : ']')) {
            c->at++;
            c->depth--;
            continue;
        }
        if (!scan_is(c, ','))
            return scan_fail(c, "Expecting ',' delimiter", c->at);
        c->at++;
        scan_space(c);
        return !in_object(c) || scan_key(c);
    }
    *ret_end = true;
    return c->at == c->len || scan_fail(c, "Extra data", c->at);
}

/* False with c->why and c->why_at. */
static bool scan_document(struct scan *c) {
    bool end = false;
    scan_space(c);
    while (!end) {
        bool empty = false;
        if (++c->values > FIELDS_VALUES_MAX)
            return scan_fail(c, "More than 500000 values", c->at);
        if (scan_is(c, '{') || scan_is(c, '[')) {
            if (!scan_open(c, &empty))
                return false;
            if (!empty)
                continue;
        } else if (!scan_scalar(c)) {
            return false;
        }
        if (!scan_after(c, &end))
            return false;
    }
    return !c->ours || scan_fail(c, c->ours, c->ours_at);
}

/* What the scanner lets pass and jansson does not; the place is behind the key or number. */
static void blame(struct scan *c, const json_error_t *why) {
    enum json_error_code code = json_error_code(why);
    size_t at = why->position > 0 ? (size_t)why->position : 0;
    scan_fail(c,
              code == json_error_duplicate_key      ? "Duplicate key"
              : code == json_error_numeric_overflow ? "Number out of range (integers have 64 bits)"
                                                    : "Not valid JSON",
              at < c->len ? at : c->len);
}

/* Behind the string that begins there. */
static size_t past_string(const char *text, size_t len, size_t at) {
    const char *quote;
    for (at++; at < len && (quote = memchr(text + at, '"', len - at)); at = quote - text + 1) {
        size_t end = (size_t)(quote - text), slashes = 0;
        while (slashes < end - at && text[end - 1 - slashes] == '\\')
            slashes++;
        if (slashes % 2 == 0)
            return end + 1;
    }
    return len;
}

size_t json_text_values(const char *text, size_t len, size_t most) {
    size_t n = 1;
    for (size_t at = 0; at < len && n <= most;) {
        char c = text[at];
        if (c == '"') {
            at = past_string(text, len, at);
            continue;
        }
        n += c == ',' || c == '[' || c == '{';
        at++;
    }
    return n;
}

json_t *json_text_parse(const char *text, size_t len, struct json_fault *f) {
    struct scan c = {.s = text, .len = len};
    json_error_t why;
    json_t *root = NULL;
    if (scan_document(&c)) {
        root = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);
        if (!root)
            blame(&c, &why);
    }
    *f = (struct json_fault){c.why, c.why_at};
    return root;
}
