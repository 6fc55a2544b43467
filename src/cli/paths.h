#pragma once
/* Where things are unless somebody says otherwise. All strings are the caller's. */

#include "base/err.h"

/* The engine's socket of this user. */
char *paths_socket(void);
/* The directory of cloche-warden and its fellows: installed beside us, or our own (build tree). */
int paths_libexec(char **ret, struct err *e);
/* The configuration file that is read when none is named; NULL when there is none. */
char *paths_config_file(void);
/* Where this user's lasting state is kept; NULL when the environment does not tell. */
char *paths_state_dir(void);
/* Makes that directory and those above it where they are missing: 0755 for root, else 0700. */
int paths_make_state_dir(const char *dir, struct err *e);
/* Relative to the working directory made absolute; the file need not exist. */
int paths_absolute(const char *path, char **ret, struct err *e);
