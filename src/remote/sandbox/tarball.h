#pragma once
/* Directories as tar.gz, the way that they travel. */

#include "base/err.h"

struct outdir;

/* A file without a name, for what is too large for memory. */
int tarball_temporary(int *ret_fd, struct err *e);
/* The directory `path` and all below it, named relative to it. *ret_skipped: what is neither file,
 * directory nor symbolic link. */
int tarball_pack(const char *path, int to, unsigned *ret_skipped, struct err *e);
/* Files and directories of an archive, below `to`; `from` is at its start. *ret_skipped: the rest,
 * links above all.
 * SECURITY: names and contents are a stranger's; see outdir.h. */
int tarball_unpack(int from, struct outdir *to, unsigned *ret_skipped, struct err *e);
