/* See id.h. */

#include "base/id.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

const char *id_make(const char *prefix, char *out, size_t cap) {
    unsigned char bits[ID_DIGITS / 2];
    size_t len = strlen(prefix);
    if (cap <= ID_DIGITS || len > cap - ID_DIGITS - 1)
        abort();
    ssize_t n;
    do
        n = getrandom(bits, sizeof bits, 0);
    while (n < 0 && errno == EINTR);
    if (n != (ssize_t)sizeof bits)
        abort();
    memcpy(out, prefix, len);
    for (size_t i = 0; i < sizeof bits; i++) {
        static const char digits[] = "0123456789abcdef";
        out[len++] = digits[bits[i] >> 4];
        out[len++] = digits[bits[i] & 15];
    }
    out[len] = '\0';
    return out;
}
