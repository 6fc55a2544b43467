#pragma once
/* What came out of a build, as a virtual environment.
 *
 * SECURITY: the archive is a stranger's. Of it are taken regular files and directories below
 * site-packages, bin, share and etc, and none of what an interpreter looks at before it was told to
 * run anything: no .pth file, no sitecustomize. The interpreter's link and pyvenv.cfg are made
 * here. */

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct environment {
    const char *path;    /* borrowed: where it is to be; nothing is there */
    const char *python;  /* borrowed: the interpreter */
    const char *version; /* borrowed: "3.11.2" */
    bool system_packages;
    uint64_t bytes; /* filled in: what was unpacked */
    unsigned files, skipped;
};

/* `archive` is a tar.gz, at its start. */
int unpack_environment(int archive, struct environment *x, struct err *e);
