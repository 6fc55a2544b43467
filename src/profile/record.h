#pragma once
/* profile.json (config/made.h) and the lock beside it.
 *
 * "build" says how it was made: python, version, requirements, find_links, allow_builds,
 * system_packages, live_what (why there is no IPython), lazy (modules that start threads), left_out
 * (files that would have run early), bytes, made (a date). */

#include "base/buf.h"
#include "base/err.h"

struct json_t;

/* What the sandbox says was installed, checked: an array of {name, version, sha256?, url?}. The
 * caller's reference. SECURITY: it is shown, and written into a file for pip. */
int record_installed(const struct json_t *said, struct json_t **ret, struct err *e);
/* A requirement for each, with its hash where all have one: for pip, in that sandbox again. */
struct json_t *record_lock(const struct json_t *installed);
/* Writes both files into the directory. */
int record_write(const char *dir, const struct json_t *record, struct err *e);
