/* Whether bytes are JSON, without making anything of them: what a hostile process returned may be
 * large, and is only passed on. Integers of any length are fine, as they are for JSON itself. */

#include "base/json_value.h"

#include "base/json.h"
#include "base/text.h"

#include <string.h>

struct text {
    const char *at, *end;
};

static char peek(const struct text *t) {
    return t->at < t->end ? *t->at : '\0';
}

static void skip_space(struct text *t) {
    while (t->at < t->end && (*t->at == ' ' || *t->at == '\t' || *t->at == '\n' || *t->at == '\r'))
        t->at++;
}

static bool take_char(struct text *t, char c) {
    bool is = t->at < t->end && *t->at == c;
    t->at += is;
    return is;
}

static bool take_word(struct text *t, const char *word) {
    size_t len = strlen(word);
    if ((size_t)(t->end - t->at) < len || memcmp(t->at, word, len) != 0)
        return false;
    t->at += len;
    return true;
}

static bool take_digits(struct text *t) {
    const char *from = t->at;
    while (peek(t) >= '0' && peek(t) <= '9')
        t->at++;
    return t->at > from;
}

static bool take_number(struct text *t) {
    take_char(t, '-');
    if (!take_char(t, '0') && !take_digits(t))
        return false;
    if (take_char(t, '.') && !take_digits(t))
        return false;
    if (!take_char(t, 'e') && !take_char(t, 'E'))
        return true;
    if (!take_char(t, '+'))
        take_char(t, '-');
    return take_digits(t);
}

static bool take_hex(struct text *t) {
    for (int i = 0; i < 4; i++, t->at++) {
        char c = peek(t);
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')))
            return false;
    }
    return true;
}

/* Whether it is UTF-8 is asked for all of it at once. */
static bool take_string(struct text *t) {
    if (!take_char(t, '"'))
        return false;
    while (t->at < t->end && *t->at != '"') {
        if ((unsigned char)*t->at < 0x20)
            return false;
        if (*t->at++ != '\\')
            continue;
        char c = peek(t);
        t->at += c != '\0';
        if (c == 'u' ? !take_hex(t) : c == '\0' || !strchr("\"\\/bfnrt", c))
            return false;
    }
    return take_char(t, '"');
}

static bool take_plain(struct text *t) {
    char c = peek(t);
    if (c == '"')
        return take_string(t);
    if (c == '-' || (c >= '0' && c <= '9'))
        return take_number(t);
    return take_word(t, "true") || take_word(t, "false") || take_word(t, "null");
}

/* What is open, innermost last. */
struct nest {
    char open[JSON_VALUE_DEPTH];
    unsigned n;
};

static bool take_key(struct text *t) {
    skip_space(t);
    if (!take_string(t))
        return false;
    skip_space(t);
    return take_char(t, ':');
}

/* From where a value may begin to where one has ended: brackets may have opened, and are empty or
 * go on. False: no JSON. */
static bool take_value(struct text *t, struct nest *n) {
    for (;;) {
        skip_space(t);
        char c = peek(t);
        if (c != '[' && c != '{')
            return take_plain(t);
        if (n->n == JSON_VALUE_DEPTH)
            return false;
        t->at++;
        skip_space(t);
        if (take_char(t, c == '[' ? ']' : '}'))
            return true;
        n->open[n->n++] = c;
        if (c == '{' && !take_key(t))
            return false;
    }
}

bool json_is_value(const char *text, size_t len) {
    struct text t = {text, text + len};
    struct nest n = {.n = 0};
    if (!json_is_utf8(text, len) || !take_value(&t, &n))
        return false;
    for (;;) {
        skip_space(&t);
        if (n.n == 0)
            return t.at == t.end;
        char open = n.open[n.n - 1];
        if (take_char(&t, open == '[' ? ']' : '}')) {
            n.n--;
        } else if (!take_char(&t, ',') || (open == '{' && !take_key(&t)) || !take_value(&t, &n)) {
            return false;
        }
    }
}

/* Behind the string that begins at `at`. */
static const char *after_string(const char *at, const char *end) {
    for (at++; at < end; at++) {
        const char *quote = memchr(at, '"', (size_t)(end - at));
        if (!quote)
            return end;
        const char *back = quote;
        while (back > at && back[-1] == '\\')
            back--;
        if ((quote - back) % 2 == 0)
            return quote + 1;
        at = quote;
    }
    return end;
}

/* Behind the value that begins at `at`, with what comes after it. */
static const char *after_value(const char *at, const char *end) {
    unsigned depth = 0;
    while (at < end) {
        if (*at == '"') {
            at = after_string(at, end);
            continue;
        }
        if (depth == 0 && (*at == ',' || *at == '}' || *at == ']'))
            return at;
        depth += *at == '{' || *at == '[';
        depth -= *at == '}' || *at == ']';
        at++;
    }
    return end;
}

struct json_span json_first(const char *text, size_t len) {
    return (struct json_span){text, (size_t)(after_value(text, text + len) - text)};
}

static struct json_span find_member(const char *text, size_t len, const char *inside, size_t n) {
    const char *at = text, *end = text + len;
    while (at < end && (*at == '{' || *at == ',')) {
        const char *key = ++at;
        if (at == end || *at != '"')
            break;
        at = after_string(at, end);
        bool is_it = (size_t)(at - key) == n + 2 && memcmp(key + 1, inside, n) == 0;
        const char *value = at < end ? at + 1 : end; /* behind the colon */
        at = after_value(value, end);
        if (is_it)
            return (struct json_span){value, (size_t)(at - value)};
    }
    return (struct json_span){0};
}

struct json_span json_member(const char *text, size_t len, const char *name) {
    return find_member(text, len, name, strlen(name));
}

struct json_span json_member_as(const char *text, size_t len, const char *json_name) {
    return find_member(text, len, json_name + 1, strlen(json_name) - 2);
}

/* ---- the inside of strings ---- */

static uint32_t hex4(const char *at) {
    uint32_t v = 0;
    for (int i = 0; i < 4; i++) {
        uint32_t c = (unsigned char)at[i];
        v = v << 4 | (c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return v;
}

/* The second escape of a pair, of which `c` is the first; or 0. */
static uint32_t low_half(uint32_t c, const char *at, const char *end) {
    if (c < 0xd800 || c >= 0xdc00 || end - at < 6 || at[0] != '\\' || at[1] != 'u')
        return 0;
    uint32_t low = hex4(at + 2);
    return low >= 0xdc00 && low < 0xe000 ? low : 0;
}

/* Behind the escape at `at`, of which the backslash and the u are read. */
static const char *add_code(struct buf *to, const char *at, const char *end) {
    uint32_t c = end - at < 4 ? 0xfffd : hex4(at);
    at = end - at < 4 ? end : at + 4;
    uint32_t low = low_half(c, at, end);
    if (low) {
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
        at += 6;
    }
    text_add_char(to, c);
    return at;
}

void json_unescape(struct buf *to, const char *inside, size_t len) {
    static const char from[] = "bfnrt", means[] = "\b\f\n\r\t";
    if (len == 0) /* there may be nothing at all */
        return;
    const char *end = inside + len;
    buf_reserve(to, len);
    while (inside < end) {
        const char *slash = memchr(inside, '\\', (size_t)(end - inside));
        buf_add(to, inside, (size_t)((slash ? slash : end) - inside));
        if (!slash || end - slash < 2)
            return;
        const char *known = memchr(from, slash[1], sizeof from - 1);
        inside = slash + 2;
        if (slash[1] == 'u')
            inside = add_code(to, inside, end);
        else
            buf_addc(to, known ? means[known - from] : slash[1]);
    }
}

/* Behind the escape at `at`. */
static const char *after_escape(const char *at, const char *end) {
    if (end - at < 6 || at[1] != 'u')
        return end - at < 2 || at[1] == 'u' ? end : at + 2;
    return low_half(hex4(at + 2), at + 6, end) ? at + 12 : at + 6;
}

size_t json_inside_cut(const char *inside, size_t len, size_t at) {
    const char *from = inside, *end = inside + len, *want = inside + at;
    while (from < want && at < len) {
        const char *slash = memchr(from, '\\', (size_t)(want - from));
        if (slash) {
            from = after_escape(slash, end);
            continue;
        }
        for (from = want; from < end && ((unsigned char)*from & 0xc0) == 0x80; from++)
            ;
    }
    return at < len ? (size_t)(from - inside) : len;
}
