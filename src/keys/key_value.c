/* See key_value.h. */

#include "keys/key_value.h"

#include "base/log.h"
#include "keys/keys.h"

#include <string.h>

#define HEX_DIGITS   "0123456789abcdef"
#define WORD_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._@-"

void key_hex_write(const uint8_t *bytes, size_t n, char *out) {
    for (size_t i = 0; i < n; i++) {
        out[2 * i] = HEX_DIGITS[bytes[i] >> 4];
        out[2 * i + 1] = HEX_DIGITS[bytes[i] & 15];
    }
    out[2 * n] = '\0';
}

bool key_hex_read(const char *text, uint8_t *out, size_t n) {
    if (strlen(text) != 2 * n || strspn(text, HEX_DIGITS) != 2 * n)
        return false;
    for (size_t i = 0; i < 2 * n; i++) {
        unsigned digit = (unsigned)(strchr(HEX_DIGITS, text[i]) - HEX_DIGITS);
        out[i / 2] = (uint8_t)(i % 2 ? out[i / 2] | digit : digit << 4);
    }
    return true;
}

int key_check_word(const char *kind, const char *field, const char *text, struct err *e) {
    size_t len = strlen(text);
    if (len > 0 && len <= KEYS_WORD_MAX && strspn(text, WORD_LETTERS) == len)
        return 0;
    char quoted[96];
    return err_user(e, kind, "%s is %s; it must be 1 to %d characters of A-Z a-z 0-9 . _ @ -",
                    field, log_quote(text, quoted, sizeof quoted), KEYS_WORD_MAX);
}

const char *const key_rights[] = {"profiles", NULL};

int key_read_right(const char *kind, const char *text, uint32_t *to, struct err *e) {
    for (unsigned i = 0; key_rights[i]; i++) {
        if (strcmp(text, key_rights[i]) == 0) {
            *to |= 1u << i;
            return 0;
        }
    }
    char quoted[96];
    return err_user(e, kind, "there is no right %s; there is profiles",
                    log_quote(text, quoted, sizeof quoted));
}

int key_check_limit(const char *kind, const char *field, double v, double min, struct err *e) {
    /* Written so that a NaN is refused. */
    if (v >= min && v <= KEYS_LIMIT_MAX)
        return 0;
    return err_user(e, kind, "%s is %g; it must be from %g to %u (without it there is no limit)",
                    field, v, min, KEYS_LIMIT_MAX);
}
