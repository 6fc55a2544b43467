#pragma once
/* What a limit did to a program, in words: the `warnings` of its result. Each names the limit in
 * parentheses at its end, as the API calls it; the command line puts its own flag there. */

#include "base/schema.h"
#include "config/config.h"
#include "wire/messages.h"

#include <stdbool.h>

struct buf;
struct jw;

struct limits_met {
    enum limit_kind limit;
    struct limits of; /* what it was given */
    bool ended;       /* the limit was its end; otherwise it met it and went on */
    bool cut[2];      /* its stdout, its stderr */
    bool crowded;     /* since there was no room beside what others printed */
    bool lost;        /* what an earlier server had of them */
    bool results_cut, files_cut;
};

/* A line for each. */
void warnings_add(const struct limits_met *m, struct buf *to);
/* The member that warnings_put writes. */
#define WARNINGS_FIELD                                                                             \
    MAY_HAVE("warnings", FIELD_LIST, .help = "in words: which limit did what, and what was cut")
/* "warnings", unless there are none. `lines` is what warnings_add and others wrote. */
void warnings_put(struct jw *j, const struct buf *lines);
