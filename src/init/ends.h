#pragma once
/* What connects one process of the sandbox with its owner: a control socket, three pipes, and the
 * Landlock ruleset that the process enters. */

#include "base/err.h"
#include "wire/codec.h"

#include <stdint.h>

struct ends {
    int ctl[2];             /* the owner's, the process's */
    int ours[3], theirs[3]; /* stdin, stdout, stderr: `ours` are the owner's */
    int ruleset;            /* the null device where there is no Landlock */
};

/* What was made before a failure is the caller's to close. */
int ends_make(uint32_t uid, struct ends *s, struct err *e);
void ends_done(struct ends *s);
/* Those of the process, as they travel in I_READY; borrowed. */
struct wire_fds ends_theirs(const struct ends *s);
