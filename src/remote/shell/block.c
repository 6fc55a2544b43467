/* See block.h. It is no parser: what it takes for whole and is not, the kernel refuses with a
 * syntax error; what it takes for open can be finished or, with Ctrl-C, given up. */

#include "remote/shell/block.h"

#include <string.h>

struct scan {
    char quote;  /* of the string that we are in, or NUL */
    bool triple; /* it has three of them */
    int depth;   /* of brackets */
    char last;   /* the last character of this logical line that is neither blank nor comment */
    bool is_block, is_joined; /* a line opened one; a backslash joins the next line to this one */
    bool at_start;            /* of a logical line */
};

static bool is_triple(const char *p) {
    return p[0] == p[1] && p[1] == p[2];
}

/* Returns where to go on. */
static const char *scan_string(struct scan *s, const char *p) {
    if (*p == '\\' && p[1])
        return p + 2;
    if (*p == '\n' && !s->triple) { /* it was never closed */
        s->quote = '\0';
        return p;
    }
    if (*p != s->quote || (s->triple && !is_triple(p)))
        return p + 1;
    s->quote = '\0';
    return p + (s->triple ? 3 : 1);
}

static const char *end_line(struct scan *s, const char *p) {
    if (s->depth == 0 && !s->is_joined) {
        s->is_block |= s->last == ':';
        s->last = '\0';
        s->at_start = true;
    }
    s->is_joined = false;
    return p + 1;
}

static const char *scan_code(struct scan *s, const char *p) {
    if (*p == '\n')
        return end_line(s, p);
    if (*p == '#')
        return p + strcspn(p, "\n");
    if (*p == '\\' && p[1] == '\n') {
        s->is_joined = true;
        return p + 1;
    }
    if (*p == ' ' || *p == '\t' || *p == '\r')
        return p + 1;
    if (s->at_start && *p == '@')
        s->is_block = true;
    s->at_start = false;
    s->last = *p;
    if (*p == '"' || *p == '\'') {
        s->quote = *p;
        s->triple = is_triple(p);
        return p + (s->triple ? 3 : 1);
    }
    if (strchr("([{", *p))
        s->depth++;
    else if (strchr(")]}", *p) && s->depth > 0)
        s->depth--;
    return p + 1;
}

/* Lines for IPython: !command, %magic, ?name, name?. They are one line each. */
static bool is_magic(const char *text) {
    const char *p = text + strspn(text, " \t");
    size_t len = strcspn(p, "\n");
    while (len && (p[len - 1] == ' ' || p[len - 1] == '\r'))
        len--;
    return len && (*p == '!' || *p == '?' || p[len - 1] == '?' || (*p == '%' && p[1] != '%'));
}

static bool ends_empty(const char *text) {
    size_t len = strlen(text);
    if (len < 1 || text[len - 1] != '\n')
        return false;
    for (len--; len && (text[len - 1] == ' ' || text[len - 1] == '\t');)
        len--;
    return len == 0 || text[len - 1] == '\n';
}

static struct scan scan(const char *text, bool *ret_joined) {
    struct scan s = {.at_start = true};
    *ret_joined = false;
    for (const char *p = text; *p;) {
        *ret_joined = s.is_joined;
        p = s.quote ? scan_string(&s, p) : scan_code(&s, p);
    }
    return s;
}

bool block_is_whole(const char *text) {
    bool joined;
    if (strncmp(text, "%%", 2) == 0)
        return ends_empty(text);
    if (is_magic(text))
        return true;
    const struct scan s = scan(text, &joined);
    if (s.quote || s.depth > 0 || (joined && !ends_empty(text)))
        return false;
    return !s.is_block || ends_empty(text);
}

bool block_is_compound(const char *text) {
    bool joined;
    const struct scan s = scan(text, &joined);
    return !is_magic(text) && strncmp(text, "%%", 2) != 0 && s.is_block && !s.quote && s.depth == 0;
}

static bool begins_with_word(const char *line, const char *word) {
    size_t len = strlen(word);
    return strncmp(line, word, len) == 0 && !strchr("abcdefghijklmnopqrstuvwxyz_", line[len]);
}

bool block_goes_on_with(const char *line) {
    static const char *const words[] = {"else", "elif", "except", "finally"};
    if (*line == ' ' || *line == '\t')
        return true;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (begins_with_word(line, words[i]))
            return true;
    return false;
}

#define INDENT_MAX 100u

unsigned block_indent(const char *text) {
    static const char *const leaving[] = {"return", "pass", "break", "continue", "raise"};
    size_t len = strlen(text);
    bool joined;
    const struct scan s = scan(text, &joined);
    if (s.quote || len == 0 || ends_empty(text))
        return 0;
    size_t from = len - (text[len - 1] == '\n');
    while (from && text[from - 1] != '\n')
        from--;
    unsigned n = (unsigned)strspn(text + from, " ");
    if (n > INDENT_MAX || text[from + n] == '\t')
        return 0;
    if (s.depth > 0)
        return n;
    /* The last line's colon: a scan of that line alone. */
    if (scan(text + from, &joined).is_block && text[from + n] != '@')
        return n + 4;
    for (size_t i = 0; i < sizeof leaving / sizeof *leaving; i++)
        if (begins_with_word(text + from + n, leaving[i]))
            return n < 4 ? 0 : n - 4;
    return n;
}
