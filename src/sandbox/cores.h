#pragma once
/* Core dumps of programs reach nobody.
 *
 * SECURITY: a limit of 1, not of 0. A dump that is piped to a program of the host (core_pattern)
 * ignores a limit of 0, but 1 is what the kernel takes as "none at all" for pipes, and it is too
 * small for files. Where the hard limit is 0 (sudo makes it so) it takes CAP_SYS_RESOURCE to get to
 * 1; without it 0 will do as long as dumps go to files. */

#include "base/err.h"

#include <stdbool.h>

/* For those who start others: the hard limit becomes 1 if it is 0 and that can be. */
void cores_allow_limit(void);
/* Whether cores_forbid can keep dumps from a program of the host as well. */
bool cores_can_be_kept(void);
#define CORES_PATTERN "/proc/sys/kernel/core_pattern"
/* Whether the host pipes dumps to a program or sends them to a socket, by the pattern in that file;
 * true when it cannot be found out. */
bool cores_are_piped(const char *pattern);
/* For this process and its children, for good. */
int cores_forbid(struct err *e);
