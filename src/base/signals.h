#pragma once
/* For a child that is to become another program: what was ignored or blocked here is not there. */

#include <signal.h>

static inline void signals_reset(void) {
    sigset_t none;
    for (int sig = 1; sig < NSIG; sig++)
        signal(sig, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}
