#pragma once
/* Paths in a sandbox. */

#include "remote/sandbox/sandbox_cmd.h"

enum place { PLACE_NONE, PLACE_FILE, PLACE_DIRECTORY };

/* What the user wrote, relative to /workspace: "" is that itself. *ret_is_dir, which may be NULL:
 * it says that it is a directory (a slash at the end, or no name at all). *ret is owned. */
int place_path(const char *word, char **ret, bool *ret_is_dir, struct err *e);
int place_look(struct sandbox_cmd *b, const char *sandbox, const char *path, enum place *ret,
               struct err *e);
/* SANDBOX/files/PATH or SANDBOX/archive/PATH. */
void place_url(struct buf *to, const char *sandbox, const char *what, const char *path);
/* The last name of a path; "" for the workspace itself. */
const char *place_name(const char *path);
/* DIR/NAME, owned; DIR may be empty. */
char *place_join(const char *dir, const char *name);
