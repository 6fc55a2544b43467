#pragma once
/* Where things are unless somebody says otherwise. All strings are the caller's. */

#include "base/err.h"

/* The engine's socket of this user. */
char *paths_socket(void);
/* The directory of cloche-warden and its fellows: installed beside us, or our own (build tree). */
int paths_libexec(char **ret, struct err *e);
/* The configuration file that is read when none is named; NULL when there is none. */
char *paths_config_file(void);
/* The file of variables that is read as well: the one beside that file, or, without one, where it
 * would be; NULL when there is none. */
char *paths_env_file(const char *config_file);
/* Where this user's lasting state is kept; NULL when the environment does not tell. */
char *paths_state_dir(void);
/* Where `cloche profile` puts what it makes. */
char *paths_profiles_dir(void);
/* Opens that directory; it and those above it are made where they are missing: 0755 for root, else
 * 0700. Refused if another user has a hand in it (safedir.h). */
int paths_make_state_dir(const char *dir, int *ret, struct err *e);
/* Relative to the working directory made absolute; the file need not exist. */
int paths_absolute(const char *path, char **ret, struct err *e);
