/* See imports.h.
 *
 * Python's grammar makes this easy: `import` is a keyword, so outside strings and comments the word
 * is always an import statement, and `from` is one exactly when a dotted name and `import` follow
 * on the same logical line (`yield from x` and `raise a from b` end there instead). So the text is
 * cut into words, strings, comments and the rest, and no statement structure is kept. String
 * prefixes need no care: the word before a quote is skipped as a word, and a backslash protects a
 * quote in raw strings too. An f-string is a string; quotes nested in it (3.12) merely cut it in
 * two. */

#include "engine/oneshot/imports.h"

#include <stdbool.h>
#include <string.h>

struct text {
    const uint8_t *data;
    size_t len, at;
};

struct word {
    const char *data;
    size_t len;
};

static int peek(const struct text *t, size_t ahead) {
    return ahead < t->len - t->at ? t->data[t->at + ahead] : -1;
}

static bool is_word_byte(int c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c >= 0x80;
}

static bool is_newline(int c) {
    return c == '\n' || c == '\r';
}

/* Blanks within a logical line: a backslash at the end of a line continues it. */
static void skip_blanks(struct text *t) {
    for (;;) {
        int c = peek(t, 0);
        if (c == ' ' || c == '\t' || c == '\f')
            t->at++;
        else if (c == '\\' && peek(t, 1) == '\r' && peek(t, 2) == '\n')
            t->at += 3;
        else if (c == '\\' && is_newline(peek(t, 1)))
            t->at += 2;
        else
            return;
    }
}

static struct word read_word(struct text *t) {
    size_t from = t->at;
    while (is_word_byte(peek(t, 0)))
        t->at++;
    return (struct word){(const char *)t->data + from, t->at - from};
}

static bool word_is(struct word w, const char *text) {
    return w.len == strlen(text) && memcmp(w.data, text, w.len) == 0;
}

static void skip_comment(struct text *t) {
    while (peek(t, 0) >= 0 && !is_newline(peek(t, 0)))
        t->at++;
}

/* At a quote. A short string that is not closed ends with its line. */
static void skip_string(struct text *t) {
    int quote = peek(t, 0);
    bool is_long = peek(t, 1) == quote && peek(t, 2) == quote;
    t->at += is_long ? 3 : 1;
    for (int c; (c = peek(t, 0)) >= 0; t->at++) {
        if (c == '\\') {
            if (peek(t, 1) == '\r' && peek(t, 2) == '\n')
                t->at++; /* one line end of two bytes */
            if (peek(t, 1) >= 0)
                t->at++;
        } else if (!is_long && is_newline(c)) {
            return;
        } else if (c == quote && !is_long) {
            t->at++;
            return;
        } else if (c == quote && peek(t, 1) == quote && peek(t, 2) == quote) {
            t->at += 3;
            return;
        }
    }
}

/* a.b.c, with blanks anywhere; returns the a. */
static struct word read_dotted(struct text *t) {
    struct word first = read_word(t);
    skip_blanks(t);
    while (first.len && peek(t, 0) == '.') {
        t->at++;
        skip_blanks(t);
        read_word(t);
        skip_blanks(t);
    }
    return first;
}

/* Takes the word if it is the next one. */
static bool take_keyword(struct text *t, const char *text) {
    struct text ahead = *t;
    if (!word_is(read_word(&ahead), text))
        return false;
    *t = ahead;
    skip_blanks(t);
    return true;
}

struct report {
    void (*seen)(void *arg, const char *module, size_t len);
    void *arg;
    unsigned left;
};

static void report_name(struct report *r, struct word w) {
    if (!w.len || !r->left)
        return;
    r->left--;
    r->seen(r->arg, w.data, w.len);
}

/* After `import`: a.b as c, d */
static void scan_import(struct text *t, struct report *r) {
    for (;; t->at++) {
        skip_blanks(t);
        report_name(r, read_dotted(t));
        if (take_keyword(t, "as")) {
            read_word(t);
            skip_blanks(t);
        }
        if (peek(t, 0) != ',')
            return;
    }
}

/* After `from`: x.y import …, or ..x import …; the names behind `import` are not modules to us. */
static void scan_from(struct text *t, struct report *r) {
    skip_blanks(t);
    bool is_relative = peek(t, 0) == '.';
    while (peek(t, 0) == '.') {
        t->at++;
        skip_blanks(t);
    }
    struct text ahead = *t;
    struct word module = {0};
    if (!is_relative || !take_keyword(&ahead, "import")) {
        module = read_dotted(&ahead);
        if (!take_keyword(&ahead, "import"))
            return; /* yield from, raise from: the words after it are read as usual */
    }
    *t = ahead;
    if (!is_relative)
        report_name(r, module);
}

void imports_scan(const uint8_t *code, size_t len,
                  void (*seen)(void *arg, const char *module, size_t len), void *arg) {
    struct text t = {.data = code, .len = len < IMPORTS_MAX_BYTES ? len : IMPORTS_MAX_BYTES};
    struct report r = {seen, arg, IMPORTS_MAX_NAMES};
    if (t.len >= 3 && memcmp(code, "\xef\xbb\xbf", 3) == 0)
        t.at = 3;
    while (t.at < t.len && r.left) {
        int c = peek(&t, 0);
        if (c == '#') {
            skip_comment(&t);
        } else if (c == '\'' || c == '"') {
            skip_string(&t);
        } else if (is_word_byte(c)) {
            struct word w = read_word(&t);
            if (word_is(w, "import"))
                scan_import(&t, &r);
            else if (word_is(w, "from"))
                scan_from(&t, &r);
        } else {
            t.at++;
        }
    }
}

/* Whether the list "a b.c d" holds the module, dotted names by their first part. */
static bool list_has(const char *list, const char *module, size_t len) {
    while (*list) {
        list += strspn(list, " ");
        size_t item = strcspn(list, " "), top = strcspn(list, " .");
        if (top == len && memcmp(list, module, len) == 0)
            return true;
        list += item;
    }
    return false;
}

struct choice {
    const char *const *modules;
    unsigned n;
    unsigned lacks[IMPORTS_MAX_PROFILES];
};

static void count_module(void *arg, const char *module, size_t len) {
    struct choice *c = arg;
    if (list_has(c->modules[0], module, len))
        return;
    bool has[IMPORTS_MAX_PROFILES] = {false}, any = false;
    for (unsigned k = 1; k < c->n; k++)
        any |= has[k] = list_has(c->modules[k], module, len);
    for (unsigned k = 0; any && k < c->n; k++)
        c->lacks[k] += !has[k];
}

unsigned imports_choose(const uint8_t *code, size_t len, const char *const *modules, unsigned n) {
    struct choice c = {.modules = modules,
                       .n = n < IMPORTS_MAX_PROFILES ? n : IMPORTS_MAX_PROFILES};
    if (c.n < 2)
        return 0;
    imports_scan(code, len, count_module, &c);
    unsigned best = 0;
    for (unsigned k = 1; k < c.n; k++)
        if (c.lacks[k] < c.lacks[best])
            best = k;
    return best;
}
