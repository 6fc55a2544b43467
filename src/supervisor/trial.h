#pragma once
/* Whether the profiles work: a private engine starts each interpreter in its walls and imports what
 * the profile preloads, for programs and for live kernels. `cloche doctor` asks. */

#include "base/err.h"
#include "config/config.h"

enum trial_state { TRIAL_NONE, TRIAL_READY, TRIAL_BROKEN, TRIAL_OFF };

struct trial_half {
    enum trial_state state; /* NONE: not tried; OFF: cannot be here */
    char why[300];
};

struct trial {
    struct trial_half programs, live;
};

/* `ret` has one for each of the `n` named profiles. -1: none could be tried, and *e says why. */
int trial_run(struct config *c, struct trial *ret, unsigned n, struct err *e);
