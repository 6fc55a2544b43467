#pragma once
/* Files of this machine that a model names. SECURITY: links are resolved first, then the path is
 * held against the directories that are allowed, then it is opened without following any link: who
 * swaps a directory meanwhile gains nothing. */

#include "base/err.h"

struct host_dirs {
    char **paths; /* owned: resolved */
    unsigned n;
};

struct mcp_words;

/* Those that are named, or home and /tmp. */
int host_dirs_open(struct host_dirs *d, const struct mcp_words *named, struct err *e);
void host_dirs_done(struct host_dirs *d);
/* A file to read. Errors are sentences for the model. */
int host_path_read(const struct host_dirs *d, const char *path, int *ret, struct err *e);
/* A file to write: directories that are missing are made. It has no name until host_path_commit, in
 * whose place an older one goes. */
struct host_write {
    int dir;    /* owned, as is: */
    char *name; /* where it is to be, in that directory */
    char part[64];
};
int host_path_write(const struct host_dirs *d, const char *path, struct host_write *ret,
                    int *ret_fd, struct err *e);
int host_path_commit(struct host_write *w, struct err *e);
/* Without a commit before, what was written goes. */
void host_write_done(struct host_write *w);
