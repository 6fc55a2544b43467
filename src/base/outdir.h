#pragma once
/* --out DIR: the files that a program made, written below a directory of the user's.
 *
 * SECURITY: names and contents are a stranger's. No component is followed that is a link, nothing
 * above DIR is reached, and what is there is replaced as a whole or not at all. */

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct outdir {
    const char *path; /* borrowed */
    int fd;           /* owned; -1 until the first file */
    mode_t dirs;      /* of directories, and of files but for x; 0: as the umask says */
};

/* Early, before anything runs: could we write there? Makes nothing. */
int outdir_check(const char *path, struct err *e);
/* Makes and opens DIR if that has not happened yet. */
int outdir_open(struct outdir *d, struct err *e);
/* Copies `size` bytes from the start of fd to DIR/name. */
int outdir_write(struct outdir *d, const char *name, int fd, uint64_t size, struct err *e);
/* DIR/name is a directory, and was one or is made. */
int outdir_mkdir(struct outdir *d, const char *name, struct err *e);
void outdir_done(struct outdir *d);
