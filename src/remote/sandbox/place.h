#pragma once
/* Paths in a sandbox. */

#include "remote/sandbox/sandbox_cmd.h"

enum box_place { PLACE_NONE, PLACE_FILE, PLACE_DIRECTORY };

/* What the user wrote, relative to /workspace: "" is that itself. *ret_is_dir, which may be NULL:
 * it says that it is a directory (a slash at the end, or no name at all). *ret is owned. */
int box_place_path(const char *word, char **ret, bool *ret_is_dir, struct err *e);
int box_place_look(struct box *b, const char *sandbox, const char *path, enum box_place *ret,
                   struct err *e);
/* SANDBOX/files/PATH or SANDBOX/archive/PATH. */
void box_place_url(struct buf *to, const char *sandbox, const char *what, const char *path);
/* The last name of a path; "" for the workspace itself. */
const char *box_place_name(const char *path);
/* DIR/NAME, owned; DIR may be empty. */
char *box_place_join(const char *dir, const char *name);
