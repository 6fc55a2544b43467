#pragma once
/* What came out of a build, as a virtual environment.
 *
 * SECURITY: the archive is a stranger's. Of it are taken regular files and directories below
 * site-packages, bin, share and etc, and none of what an interpreter looks at before it was told to
 * run anything: no .pth file, no sitecustomize. The interpreter's link and pyvenv.cfg are made
 * here. */

#include "base/buf.h"
#include "base/err.h"
#include "base/outdir.h"

#include <stdbool.h>
#include <stdint.h>

struct unpacker;

struct environment {
    const char *path;    /* borrowed: where it is to be; nothing is there */
    const char *python;  /* borrowed: the interpreter; NULL: files alone, for any of that version */
    const char *version; /* borrowed: "3.11.2" */
    bool system_packages;
    uint64_t most; /* bytes that the archive may have; 0: no bound */
    mode_t dirs;   /* of directories, and of files without x; 0: as the umask says */
    /* filled in */
    uint64_t bytes; /* what was unpacked */
    unsigned files, skipped;
    /* its own */
    struct outdir to;
    uint64_t seen;   /* bytes, what was left out too */
    struct buf site; /* lib/python3.11/site-packages */
    struct unpacker *in;
};

/* `archive` is a tar.gz, at its start; borrowed until the end. */
int environment_begin(struct environment *x, int archive, struct err *e);
/* Some more of it: 1 when there is more, 0 when that was all. Kind "too_large" when it has more
 * than it may. */
int environment_step(struct environment *x, struct err *e);
/* Also after a failure. What was written stays. */
void environment_end(struct environment *x);
/* All three. */
int environment_unpack(struct environment *x, int archive, struct err *e);
