#pragma once
/* Where things are unless somebody says otherwise. All strings are the caller's. */

#include "base/err.h"

/* The engine's socket of this user. */
char *paths_socket(void);
/* The directory of cloche-warden and its fellows: installed beside us, or our own (build tree). */
int paths_libexec(char **ret, struct err *e);
/* The configuration file that is read when none is named; NULL when there is none. */
char *paths_config_file(void);
/* Relative to the working directory made absolute; the file need not exist. */
int paths_absolute(const char *path, char **ret, struct err *e);
