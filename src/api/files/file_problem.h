#pragma once
/* What went wrong with a file of a live sandbox, as a client is told. */

#include "api/core/problem.h"

/* For an errno that init told, with its words. `writes`: a file was to be where the path says. An
 * errno that is nobody's fault is an internal error (500), for its owner to log. Returns -1. */
int file_problem(struct problem *p, int errnum, bool writes, const char *why);
int file_problem_disk_full(struct problem *p, const char *why);
/* `why` is from paths.h. */
int file_problem_bad_path(struct problem *p, const char *path, const char *why);
/* Its init was asked too much at once. */
int file_problem_busy(struct problem *p);
