#pragma once
/* The words of each verb: its name, what it takes, and its help. */

#include "remote/sandbox/options.h"

#define SANDBOX_WORDS_MAX 100000

extern const struct sandbox_verb_words {
    const char *name;
    unsigned min, max; /* words */
    const char *missing;
    const char *about, *help;
    const char *of_sandbox, *of_execution; /* what the help calls the limits; NULL: it has none */
} sandbox_verbs[SANDBOX_VERBS_];
