/* See limit_fields.h. */

#include "api/jobs/limit_fields.h"

#include "api/jobs/inputs.h"

#include <stdio.h>

/* The words of the list, as members of a struct field. */
#define AS_NUM(lo, hi)           .type = FIELD_INT, .flags = FIELD_MIN, .min = lo
#define AS_MILLI(lo, hi)         AS_NUM(lo, hi)
#define AS_LONG(lo, hi)          AS_NUM(lo, hi)
#define AS_CORES(lo, hi)         .type = FIELD_REAL
#define NAMED(name_, flag, unit) .name = name_
#define HELP(takes, help_)       .help = help_

/* clang-format off */
#define OF_LIMITS(member, type_, scope, named, helped, ...)  OF_LIMITS_##scope({named, AS_##type_, helped})
#define OF_LIMITS_CALL(...)
#define OF_LIMITS_CELL(...)    __VA_ARGS__,
#define OF_LIMITS_SANDBOX(...) __VA_ARGS__,
#define OF_LIMITS_KERNEL(...)  __VA_ARGS__,
static const struct field limit_fields[] = {LIMITS(OF_LIMITS)};

#define OF_KERNEL(member, type_, scope, named, helped, ...)  OF_KERNEL_##scope({named, AS_##type_, helped})
#define OF_KERNEL_CALL(...)
#define OF_KERNEL_CELL(...)
#define OF_KERNEL_SANDBOX(...)
#define OF_KERNEL_KERNEL(...)  __VA_ARGS__,
static const struct field kernel_limit_fields[] = {LIMITS(OF_KERNEL)};
/* clang-format on */

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
const struct schema limits_schema = {"Limits", limit_fields, COUNT(limit_fields), false};
const struct schema kernel_limits_schema = {"KernelLimits", kernel_limit_fields,
                                            COUNT(kernel_limit_fields), false};

static void read_some(const json_t *from, unsigned scopes, struct limits *ret) {
    for (size_t i = 0; i < LIMITS_; i++) {
        const char *name = limits_info[i].name;
        if (!(limits_info[i].scope & scopes))
            continue;
        if (limits_info[i].type == LIMIT_CORES)
            limits_set(ret, i,
                       (uint64_t)(json_number_value(json_object_get(from, name)) * 100 + 0.5));
        else
            limits_set(ret, i, (uint64_t)field_int(from, name, 0));
    }
}

/* The table of fields has no fractions for bounds, so those of cores are held here. */
static int check_cores(const json_t *limits, struct problem *p) {
    for (size_t i = 0; i < LIMITS_; i++) {
        const struct limit_info *info = &limits_info[i];
        const json_t *given = json_object_get(limits, info->name);
        double thousandths = json_number_value(given) * 1000;
        if (info->type == LIMIT_CORES && given &&
            (thousandths < (double)info->min || thousandths > (double)info->max))
            return problem_set(p, "bad_value", "limits.%s must be from %g to %g", info->name,
                               (double)info->min / 1000, (double)info->max / 1000);
    }
    return 0;
}

int limits_read(const json_t *body, uint32_t timeout_max, struct limits *ret, struct problem *p) {
    const json_t *l = json_object_get(body, "limits");
    if (field_int(body, "timeout_ms", 0) > timeout_max) {
        char text[100];
        snprintf(text, sizeof text, "timeout_ms exceeds maximum of %u ms", timeout_max);
        return problem_set(p, "limit_too_high", "%s", text);
    }
    if (check_cores(l, p) < 0)
        return -1;
    *ret = (struct limits){0};
    read_some(body, LIMIT_OF_CALL, ret);
    read_some(l, LIMIT_OF_WHOLE | LIMIT_OF_CELL, ret);
    return 0;
}

void limits_read_execution(const json_t *body, struct limits *ret) {
    *ret = (struct limits){0};
    read_some(body, LIMIT_OF_EXECUTION, ret);
}
