/* See num.h. strtoull takes signs, spaces and "0x"; hence our own loop, with checked arithmetic. */

#include "base/num.h"

#include "base/log.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#define QUOTE_MAX 64 /* of a refused value, this much is shown */

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* v * 10 + the digit; false when that does not fit. */
static bool push_digit(uint64_t *v, char c) {
    return !__builtin_mul_overflow(*v, 10, v) &&
           !__builtin_add_overflow(*v, (uint64_t)(c - '0'), v);
}

int num_u64(const char *text, const struct num_rule *rule, uint64_t *ret, struct err *e) {
    uint64_t v = 0;
    bool fits = true;
    const char *p = text;
    for (; is_digit(*p); p++)
        fits = fits && push_digit(&v, *p);
    if (p == text || *p || !fits || v < rule->min || v > rule->max) {
        char quoted[QUOTE_MAX];
        return err_user(e, "bad_value",
                        "%s is %s; it must be a whole number from %" PRIu64 " to %" PRIu64,
                        rule->field, log_quote(text, quoted, sizeof quoted), rule->min, rule->max);
    }
    *ret = v;
    return 0;
}

int num_u32(const char *text, const struct num_rule *rule, uint32_t *ret, struct err *e) {
    struct num_rule narrow = *rule;
    if (narrow.max > UINT32_MAX)
        narrow.max = UINT32_MAX;
    uint64_t v = 0;
    if (num_u64(text, &narrow, &v, e) < 0)
        return -1;
    *ret = (uint32_t)v;
    return 0;
}

/* The whole text as thousandths, or false if it is no such decimal or does not fit. */
static bool read_milli(const char *text, uint64_t *ret) {
    uint64_t v = 0;
    bool fits = true;
    int decimals = 0;
    const char *p = text;
    for (; is_digit(*p); p++)
        fits = fits && push_digit(&v, *p);
    if (*p == '.') {
        for (p++; is_digit(*p) && decimals < 3; p++, decimals++)
            fits = fits && push_digit(&v, *p);
        if (decimals == 0)
            return false;
    }
    if (p == text || *p)
        return false;
    for (; decimals < 3; decimals++)
        fits = fits && push_digit(&v, '0');
    *ret = v;
    return fits;
}

/* "1.5" for 1500, "2" for 2000. */
static const char *milli_text(uint64_t milli, char *out, size_t cap) {
    unsigned rest = (unsigned)(milli % 1000);
    int n = snprintf(out, cap, "%" PRIu64, milli / 1000);
    if (rest && n > 0) {
        n += snprintf(out + n, cap - (size_t)n, ".%03u", rest);
        while (out[n - 1] == '0')
            out[--n] = '\0';
    }
    return out;
}

int num_milli(const char *text, const struct num_rule *rule, uint64_t *ret, struct err *e) {
    uint64_t v = 0;
    if (!read_milli(text, &v) || v < rule->min || v > rule->max) {
        char quoted[QUOTE_MAX], min[32], max[32];
        return err_user(e, "bad_value",
                        "%s is %s; it must be a number from %s to %s with at most three decimals",
                        rule->field, log_quote(text, quoted, sizeof quoted),
                        milli_text(rule->min, min, sizeof min),
                        milli_text(rule->max, max, sizeof max));
    }
    *ret = v;
    return 0;
}
