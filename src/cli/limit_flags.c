/* See limit_flags.h. Less than the engine takes, and more than its maxima, are the engine's to
 * tell. */

#include "cli/limit_flags.h"

#include "base/num.h"

#include <getopt.h>
#include <stdio.h>

void limit_flags_options(struct option *to, int first) {
    for (size_t i = 0; i < LIMITS_; i++)
        to[i] = (struct option){limits_info[i].flag + 2, required_argument, NULL, first + (int)i};
}

int limit_flags_read(size_t i, const char *text, struct limits *to, struct err *e) {
    const struct limit_info *l = &limits_info[i];
    const struct num_rule rule = {l->flag, l->type == LIMIT_CORES ? l->min : 1, l->max};
    uint64_t v = 0;
    int rc = l->type == LIMIT_MILLI || l->type == LIMIT_CORES ? num_milli(text, &rule, &v, e)
                                                              : num_u64(text, &rule, &v, e);
    if (rc == 0)
        limits_set(to, i, l->type == LIMIT_CORES ? v / 10 : v);
    return rc;
}

void limit_flags_help(unsigned scopes, int column) {
    for (size_t i = 0; i < LIMITS_; i++) {
        const struct limit_info *l = &limits_info[i];
        char flag[64];
        if (!(l->scope & scopes))
            continue;
        snprintf(flag, sizeof flag, "  %s %s", l->flag, l->takes);
        bool is_whole = l->type != LIMIT_MILLI && l->type != LIMIT_CORES;
        printf("%-*s%s%s\n", column, flag, l->help, is_whole ? "" : ", fractions allowed");
    }
}
