#pragma once
/* The command line of `cloche key`. */

#include "base/err.h"
#include "keys/keys.h"

#include <stdbool.h>

struct key_options {
    const char *action, *operand, *tenant;           /* borrowed: argv's */
    const char *file, *state_dir, *config, *network; /* likewise */
    const char *only_add;                            /* a flag that was given and is for add only */
    struct key_limits limits;
    uint32_t rights; /* of enum key_right */
    bool json, help;
};

/* ret->json is right even after a failure. */
int key_options_parse(int argc, char **argv, struct key_options *ret, struct err *e);
int key_options_help(void);
