/* See uri.h. */

#include "mcp/uri.h"

#include "base/json.h"

#include <stdlib.h>
#include <string.h>

static int hex(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* NULL: not to be decoded. */
static char *uri_decode(const char *text, size_t len) {
    struct buf b = BUF_INIT;
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (c == '%') {
            int high = i + 2 < len ? hex(text[i + 1]) : -1;
            int low = i + 2 < len ? hex(text[i + 2]) : -1;
            if (high < 0 || low < 0)
                goto bad;
            c = (char)(high << 4 | low);
            i += 2;
        }
        if (c == '\0')
            goto bad;
        buf_addc(&b, c);
    }
    if (b.len > 0 && json_is_utf8(b.data, b.len))
        return buf_take(&b);
bad:
    buf_done(&b);
    return NULL;
}

static bool uri_take(struct uri_match *m, const char *name, size_t n, const char *text,
                     size_t len) {
    char *value = m->n < URI_VARIABLES ? uri_decode(text, len) : NULL;
    if (!value)
        return false;
    m->names[m->n] = name;
    m->name_lens[m->n] = n;
    m->values[m->n++] = value;
    return true;
}

/* At a '{' of the pattern: how far the variable reaches in the URI. */
static size_t uri_reach(const char *end, const char *uri, bool rest) {
    size_t most = rest ? strlen(uri) : strcspn(uri, "/");
    size_t literal = strcspn(end, "{");
    if (*end == '\0' || rest)
        return most;
    AUTO_BUF next = BUF_INIT;
    buf_add(&next, end, literal);
    const char *at = strstr(uri, next.data);
    return at && (size_t)(at - uri) < most ? (size_t)(at - uri) : most;
}

bool uri_matches(const char *pattern, const char *uri, struct uri_match *ret) {
    *ret = (struct uri_match){0};
    if (strlen(uri) > URI_MAX)
        return false;
    while (*pattern) {
        if (*pattern != '{') {
            if (*pattern++ != *uri++)
                goto no;
            continue;
        }
        bool rest = pattern[1] == '+';
        const char *name = pattern + 1 + rest, *end = strchr(name, '}');
        size_t len = uri_reach(end + 1, uri, rest);
        if (!uri_take(ret, name, (size_t)(end - name), uri, len))
            goto no;
        uri += len;
        pattern = end + 1;
    }
    if (*uri == '\0')
        return true;
no:
    uri_match_done(ret);
    return false;
}

const char *uri_variable(const struct uri_match *m, const char *name) {
    for (unsigned i = 0; i < m->n; i++)
        if (strlen(name) == m->name_lens[i] && memcmp(name, m->names[i], m->name_lens[i]) == 0)
            return m->values[i];
    return NULL;
}

void uri_match_done(struct uri_match *m) {
    for (unsigned i = 0; i < m->n; i++)
        free(m->values[i]);
    m->n = 0;
}
