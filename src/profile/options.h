#pragma once
/* The command line of `cloche profile`, parsed. */

#include "base/err.h"
#include "wire/limits.h"

#include <stdbool.h>

#define PROFILE_MAX_WORDS 1000

struct options;

struct profile_options {
    struct options *options; /* owned: settings */
    bool help, json, force, allow_builds, system_packages;
    const char *verb; /* pointers are into argv */
    const char *name;
    const char **packages; /* owned array */
    unsigned npackages;
    const char **apt; /* owned array: Debian packages */
    unsigned napt;
    const char **env; /* owned array: NAME=VALUE */
    unsigned nenv;
    const char *python, *requirements, *pyproject, *preload, *from, *find_links; /* or NULL */
    struct limits limits;
    uint32_t build_timeout_s, build_memory_mb, build_disk_mb;
};

/* Whether --json was asked for is known even when this fails. */
int profile_options_parse(int argc, char **argv, struct profile_options *ret, struct err *e);
void profile_options_done(struct profile_options *o);
void profile_options_help(void);
