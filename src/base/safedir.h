#pragma once
/* Directories that are made, given to the server, or listened in. SECURITY: root's are reached step
 * by step, and nothing on the way may be another user's doing: whoever could make an entry before
 * us, or swap one, would choose what root changes the owner of. Refused are, below a directory that
 * others can write to, symbolic links and directories of other users than root and the server. An
 * ordinary user's paths are taken as they are. */

#include "base/err.h"

#include <sys/types.h>

/* Opens the directory for reading; what is missing of it is made, with this mode whatever the umask
 * says. */
int safedir_make(const char *path, mode_t mode, int *ret, struct err *e);
/* The same for a directory that has to be there. */
int safedir_open(const char *path, int *ret, struct err *e);
