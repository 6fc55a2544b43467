/* See base64.h. Four digits of six bits are three bytes; the last group may have two or three
 * digits and is filled up with '='. */

#include "base/base64.h"

#include <stdint.h>
#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_encode(struct buf *to, const void *data, size_t len) {
    const uint8_t *from = data;
    char *out = buf_reserve(to, (len / 3 + 1) * 4);
    size_t made = 0;
    for (size_t i = 0; i < len; i += 3) {
        size_t n = len - i < 3 ? len - i : 3;
        uint32_t group = (uint32_t)from[i] << 16 | (n > 1 ? (uint32_t)from[i + 1] << 8 : 0u) |
                         (n > 2 ? from[i + 2] : 0u);
        for (unsigned k = 0; k < 4; k++)
            out[made++] = k <= n ? digits[group >> (18 - 6 * k) & 63] : '=';
    }
    buf_commit(to, made);
}

/* -1: not a digit. */
static int value_of(char c) {
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool base64_decode(struct buf *to, const char *text, size_t len) {
    char *out = buf_reserve(to, len / 4 * 3 + 3);
    size_t made = 0, ndigits = 0, padding = 0;
    uint32_t group = 0;
    for (size_t i = 0; i < len; i++) {
        int value = value_of(text[i]);
        if (value >= 0 && !padding) {
            group = group << 6 | (uint32_t)value;
            if (++ndigits % 4 != 0)
                continue;
            out[made++] = (char)(group >> 16);
            out[made++] = (char)(group >> 8);
            out[made++] = (char)group;
            group = 0;
        } else if (text[i] == '=') {
            padding++;
        } else if (!text[i] || !strchr(" \t\r\n", text[i])) {
            return false;
        }
    }
    size_t rest = ndigits % 4;
    if (rest == 1 || padding != (rest ? 4 - rest : 0))
        return false;
    if (rest == 2)
        out[made++] = (char)(group >> 4);
    if (rest == 3) {
        out[made++] = (char)(group >> 10);
        out[made++] = (char)(group >> 2);
    }
    buf_commit(to, made);
    return true;
}
