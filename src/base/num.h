#pragma once
/* Numbers from outside, read strictly: digits only (no sign, space, exponent or hex), within
 * bounds, and an error of kind "bad_value" that names the field, the value and what is allowed. */

#include "base/err.h"

#include <stdint.h>

/* What a field may hold; a table of options can keep these. */
struct num_rule {
    const char *field;
    uint64_t min, max; /* for num_milli in thousandths */
};

int num_u32(const char *text, const struct num_rule *rule, uint32_t *ret, struct err *e);
int num_u64(const char *text, const struct num_rule *rule, uint64_t *ret, struct err *e);

/* A decimal with at most three digits after the point, in thousandths: "1.5" is 1500, ".25" is 250.
 */
int num_milli(const char *text, const struct num_rule *rule, uint64_t *ret, struct err *e);
