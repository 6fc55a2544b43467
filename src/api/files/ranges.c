/* See ranges.h. */

#include "api/files/ranges.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#define MOST ((uint64_t)INT64_MAX) /* no file is larger */

/* As many digits as there are; what is too large is MOST. */
static bool number(const char **at, uint64_t *ret) {
    const char *start = *at;
    uint64_t v = 0;
    for (; **at >= '0' && **at <= '9'; (*at)++) {
        uint64_t digit = (uint64_t)(**at - '0');
        v = v > (MOST - digit) / 10 ? MOST : v * 10 + digit;
    }
    *ret = v;
    return *at > start;
}

static enum range last_bytes(uint64_t n, uint64_t size, struct range_part *ret) {
    if (n == 0 || size == 0)
        return RANGE_NONE;
    ret->len = n < size ? n : size;
    ret->from = size - ret->len;
    return RANGE_PART;
}

enum range range_read(const char *text, uint64_t size, struct range_part *ret) {
    static const char unit[] = "bytes=";
    uint64_t first = 0, last = 0;
    if (strncasecmp(text, unit, sizeof unit - 1) != 0)
        return RANGE_ALL;
    const char *at = text + sizeof unit - 1;
    at += strspn(at, " \t");
    bool has_first = number(&at, &first);
    if (*at++ != '-')
        return RANGE_ALL;
    bool has_last = number(&at, &last);
    at += strspn(at, " \t");
    if (*at != '\0' || (!has_first && !has_last) || (has_first && has_last && last < first))
        return RANGE_ALL;
    if (!has_first)
        return last_bytes(last, size, ret);
    if (first >= size)
        return RANGE_NONE;
    if (!has_last || last >= size)
        last = size - 1;
    *ret = (struct range_part){.from = first, .len = last - first + 1};
    return RANGE_PART;
}
