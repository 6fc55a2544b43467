#pragma once
/* What a profile costs, found out before anybody uses it: its modules are imported in a sandbox,
 * then its two zygotes are started with those that they may have. */

#include "base/err.h"
#include "wire/limits.h"

#include <stdbool.h>

struct config_profile;
struct json_t;
struct options;

struct trying {
    struct options *options;
    const struct config_profile *profile;
    const char *out; /* a directory for what comes out of the sandbox */
    struct limits limits;
};

/* Whether a module starts threads, as was found out. */
bool try_is_lazy(const struct json_t *found, const char *module);
/* {"modules": [{"name", "ms"}], "lazy": [{"name", …}], "costs": {"fork_ms", "memory_mb"},
 * "figure_ms" or "figure_why", "live": "ready", "off" or why not}. Kind "build_failed" when its
 * programs cannot work. */
int try_out(const struct trying *t, struct json_t **ret, struct err *e);
