#pragma once
/* What HTTP says of single bytes (RFC 9110, 5.6.2). */

#include <stdbool.h>
#include <string.h>
#include <strings.h>

static inline char char_small(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

/* The value of a hexadecimal digit, or -1. */
static inline int char_hex(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    c = char_small(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Whether the word is in a header's comma separated list; the list may be NULL. */
static inline bool char_lists(const char *list, const char *word) {
    size_t len = strlen(word);
    for (const char *at = list; at && *at;) {
        at += strspn(at, " \t,");
        size_t n = strcspn(at, " \t,");
        if (n == len && strncasecmp(at, word, len) == 0)
            return true;
        at += n;
    }
    return false;
}

/* Control bytes but for the tab. */
static inline bool char_is_control(char c) {
    unsigned char u = (unsigned char)c;
    return (u < 32 && u != '\t') || u == 127;
}

static inline bool char_is_token(char c) {
    return (c >= '0' && c <= '9') || (char_small(c) >= 'a' && char_small(c) <= 'z') ||
           (c != '\0' && strchr("!#$%&'*+-.^_`|~", c));
}
