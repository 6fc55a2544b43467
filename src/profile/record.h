#pragma once
/* profile.json (config/made.h) and the lock beside it.
 *
 * "build" says how it was made: python, version, requirements, find_links, allow_builds,
 * system_packages, live_what (why there is no IPython), lazy (modules that start threads), left_out
 * (files that would have run early), apt (Debian packages that were installed for it), bytes, made
 * (a date). */

#include "base/buf.h"
#include "base/err.h"

struct json_t;

/* A requirement for each, with its hash where all have one: for pip, in that sandbox again. */
struct json_t *record_lock(const struct json_t *installed);
/* Writes both files into the directory. */
int record_write(const char *dir, const struct json_t *record, struct err *e);
