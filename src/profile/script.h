#pragma once
/* One of our programs (py/profile), run in a sandbox of a private engine, by any interpreter. What
 * it prints is shown as it comes; what it found out is its result.json. */

#include "base/err.h"
#include "config/config.h"

#include <stdint.h>

struct json_t;
struct options;

struct script {
    const char *name;          /* "build" */
    const struct json_t *plan; /* what it reads: NAME.json */
    const char *files[2];      /* of the host, copied beside it under these names; or NULL */
    const char *file_names[2];
    const char *out; /* where its files go */
    bool quiet;
    const char *network;               /* what it may reach, or NULL */
    const char *wheels;                /* a directory of the host, or NULL: that of the settings */
    struct limits limits;              /* all of them */
    const struct config_profile *like; /* which it runs in, but that nothing is preloaded */
};

/* *ret is the caller's reference. Kind "build_failed" with the reason when it did not get there. */
int script_run(struct options *o, const struct script *s, struct json_t **ret, struct err *e);

/* The settings without any profile (config_done), and one to add: as another, without its modules.
 */
int script_config(struct options *o, struct config *ret, struct err *e);
struct config_profile *script_add_profile(struct config *c, const char *name,
                                          const struct config_profile *like);
