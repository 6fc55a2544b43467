/* See requirement.h: what PEP 508 says of names, extras and versions; of a condition only which
 * characters it may have, since pip reads that itself. */

#include "api/profiles/requirement.h"

#include <string.h>

static const char alnum[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

struct cursor {
    const char *at, *end;
};

static bool is_one_of(char c, const char *set) {
    return c != '\0' && strchr(set, c) != NULL;
}

static void skip_space(struct cursor *c) {
    while (c->at < c->end && is_one_of(*c->at, " \t"))
        c->at++;
}

static bool take_word(struct cursor *c, const char *word) {
    size_t n = strlen(word);
    if ((size_t)(c->end - c->at) < n || memcmp(c->at, word, n) != 0)
        return false;
    c->at += n;
    return true;
}

/* Letters, digits and these. */
static bool take_run(struct cursor *c, const char *more) {
    const char *from = c->at;
    while (c->at < c->end && (is_one_of(*c->at, alnum) || is_one_of(*c->at, more)))
        c->at++;
    return c->at > from;
}

/* It begins and ends with a letter or digit. */
static bool take_name(struct cursor *c) {
    if (c->at == c->end || !is_one_of(*c->at, alnum))
        return false;
    return take_run(c, "._-") && is_one_of(c->at[-1], alnum);
}

static bool take_extras(struct cursor *c) {
    if (!take_word(c, "["))
        return true;
    do {
        skip_space(c);
        if (!take_name(c))
            return false;
        skip_space(c);
    } while (take_word(c, ","));
    return take_word(c, "]");
}

static bool take_version(struct cursor *c) {
    static const char *const operators[] = {"===", "==", "~=", "!=", "<=", ">=", "<", ">"};
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        if (!take_word(c, operators[i]))
            continue;
        skip_space(c);
        if (!take_run(c, "")) /* a word that begins with - would be an option */
            return false;
        take_run(c, "._+!*-");
        return true;
    }
    return false;
}

static bool take_versions(struct cursor *c) {
    if (c->at == c->end || !is_one_of(*c->at, "=~!<>"))
        return true;
    do {
        skip_space(c);
        if (!take_version(c))
            return false;
        skip_space(c);
    } while (take_word(c, ","));
    return true;
}

static bool take_condition(struct cursor *c) {
    if (!take_word(c, ";"))
        return true;
    while (c->at < c->end) {
        bool may_be = take_run(c, "._'\"<>=!~(), ");
        if (!may_be && !(is_one_of(c->at[-1], alnum) && take_word(c, "-")))
            return false;
    }
    return true;
}

static bool has(const struct cursor *c, const char *word) {
    return memmem(c->at, (size_t)(c->end - c->at), word, strlen(word)) != NULL;
}

/* What is often tried, and has an answer of its own. */
static const char *common_fault(const struct cursor *c) {
    if (*c->at == '-')
        return "is an option of pip; only packages can be there";
    if (has(c, "://") || has(c, "@"))
        return "is an address; only names of packages can be there";
    if (*c->at == '.' || *c->at == '/' || has(c, "/") || has(c, "\\"))
        return "is a path; only names of packages can be there";
    return NULL;
}

const char *requirement_fault(const char *line, size_t len, bool *ret_blank) {
    struct cursor c = {line, line + len};
    skip_space(&c);
    while (c.end > c.at && is_one_of(c.end[-1], " \t\r"))
        c.end--;
    *ret_blank = c.at == c.end || *c.at == '#';
    if (*ret_blank)
        return NULL;
    if (len > REQUIREMENT_MAX)
        return "is longer than 300 bytes";
    const char *why = common_fault(&c);
    if (why)
        return why;
    bool good = take_name(&c);
    skip_space(&c);
    good = good && take_extras(&c);
    skip_space(&c);
    good = good && take_versions(&c);
    skip_space(&c);
    good = good && take_condition(&c) && c.at == c.end;
    return good ? NULL : "is no requirement, as \"polars\" or \"rich>=13\"";
}
