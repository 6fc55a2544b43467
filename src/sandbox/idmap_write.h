#pragma once
/* Writing the maps of a user namespace, once its range is known (idmap.h). */

#include "sandbox/idmap.h"

/* Writes the maps of the user namespace of process `pid`: inside 0 … count-1. When single,
 * setgroups is denied first if we are not root. Blocks for the helper programs. */
int idmap_write(const struct idmap *m, pid_t pid, struct err *e);

/* The path of a helper program in `out`, or NULL where it is not installed. */
const char *idmap_program(const char *name, char *out, size_t cap);
