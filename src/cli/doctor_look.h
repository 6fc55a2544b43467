#pragma once
/* What `cloche doctor` looks at: the layers of isolation, the machine, the profiles. It must work
 * on the worst of machines (no /proc, no privilege): nothing here fails. */

#include "base/buf.h"
#include "config/config.h"
#include "sandbox/probe.h"
#include "supervisor/trial.h"

#include <stdbool.h>
#include <stdint.h>

struct doctor_machine {
    char kernel[80], user[40], huge_pages[16];
    unsigned cores;
    uint64_t memory_mb;
};

struct doctor_profile {
    const struct config_profile *profile; /* borrowed: the configuration's */
    bool python;                          /* the interpreter is there */
    char version[16];                     /* "3.11", or "" when its name does not tell */
    struct buf missing;                   /* modules that were not found, with spaces between */
    const char **gone; /* owned, the strings borrowed: paths that it shows and that are not there */
    unsigned ngone;
    struct trial trial;
};

struct doctor_findings {
    struct probe probe;
    uint32_t need, unmet; /* bit sets of layers */
    const char *minimum;  /* borrowed: the configuration's */
    struct doctor_machine machine;
    struct doctor_profile profiles[CONFIG_MAX_PROFILES];
    unsigned nprofiles;
    char untried[300]; /* why no profile was tried, or "" */
};

/* `need`, `minimum` and `nprofiles` are the caller's; the rest is found here. Starts an engine to
 * try the profiles. */
void doctor_look(struct config *c, struct doctor_findings *f);
void doctor_findings_done(struct doctor_findings *f);
/* A profile was tried and does not work, or the engine does not start. */
bool doctor_has_broken(const struct doctor_findings *f);
