/* See url.h. */

#include "base/url.h"

#include <string.h>

void url_encode(struct buf *to, const char *text, const char *also) {
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";
    for (; *text; text++) {
        if (strchr(plain, *text) || strchr(also, *text))
            buf_addc(to, *text);
        else
            buf_addf(to, "%%%02X", (unsigned char)*text);
    }
}
