/* See url.h. */

#include "base/url.h"

#include <stdbool.h>
#include <string.h>

/* Not by printf: a list has thousands of names, each of them as long as its owner likes. */
void url_encode(struct buf *to, const char *text, const char *also) {
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";
    static const char digits[] = "0123456789ABCDEF";
    bool stays[256] = {false};
    for (const char *c = plain; *c; c++)
        stays[(unsigned char)*c] = true;
    for (; *also; also++)
        stays[(unsigned char)*also] = true;
    size_t len = strlen(text), n = 0;
    char *at = buf_reserve(to, 3 * len);
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        at[n++] = stays[c] ? (char)c : '%';
        if (stays[c])
            continue;
        at[n++] = digits[c >> 4];
        at[n++] = digits[c & 15];
    }
    buf_commit(to, n);
}
