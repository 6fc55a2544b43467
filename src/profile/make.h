#pragma once
/* A profile is made: built in a sandbox, unpacked, tried, and put in its place. */

#include "base/err.h"
#include "profile/options.h"

struct json_t;
struct place;

/* What is to be built: "packages", "requirements" and "pyproject" are for the sandbox. */
struct making {
    const struct profile_options *cmd; /* borrowed */
    struct place *place;               /* borrowed */
    struct json_t *profile;            /* owned: as the configuration file would have it */
    struct json_t *build;              /* owned: what profile.json remembers of it */
    struct json_t *plan;               /* owned: what build.py reads */
    const char *files[2], *file_names[2];
};

/* On success it is there, and *ret is what it costs (trial.h); the caller's reference. */
int make_profile(struct making *m, struct json_t **ret, struct err *e);
/* What a build may take. */
struct limits make_limits(const struct profile_options *o);
void make_done(struct making *m);
