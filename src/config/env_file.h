#pragma once
/* A file of variables beside the configuration file, `.env`, as users of other services have one:
 *
 *   # a comment
 *   NAME=VALUE               blanks around it are dropped, and what stands behind " #"
 *   export NAME=VALUE        likewise
 *   NAME='VALUE'             as it stands
 *   NAME="VALUE"             \n, \r, \t, \", \\ and \$ are what they are in a shell's $'…'
 *
 * A variable is one line. Nothing is expanded and nothing is run. What stands last counts. */

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

#define ENV_FILE_MAX (64u << 10) /* bytes */

/* Hears of each variable, in order. The strings last as long as the call. */
typedef void env_file_fn(void *arg, const char *name, const char *value);

/* Reads the file. One that is not there is none, and one that the caller may not read is not for
 * the caller (it is the server's, with secrets): *ret_read is false. SECURITY: the file decides
 * what is started and with which limits; one that belongs to neither root nor the caller, or that
 * others could have written, is refused. */
int env_file_read(const char *path, env_file_fn *fn, void *arg, bool *ret_read, struct err *e);
/* The same with the text; `path` is for messages, which name the line and never a value. */
int env_file_parse(const char *path, const char *text, size_t len, env_file_fn *fn, void *arg,
                   struct err *e);
