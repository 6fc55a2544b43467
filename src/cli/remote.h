#pragma once
/* --server, or CLOCHE_SERVER: `run` and `status` against a server somewhere else, which
 * cloche-remote does. */

#include <stdbool.h>

/* The server that a command line means: its --server, else CLOCHE_SERVER, else NULL. */
const char *remote_named(const char *flag);

/* Becomes cloche-remote with the same arguments (argv[0] is the verb). Returns only when that
 * fails: the exit status, after a line that says why. */
int remote_exec(char **argv, bool json);

/* `cloche profile`, a program of its own as well. */
int verb_profile(int argc, char **argv);

/* `cloche sandbox` and `cloche shell`, which are all HTTP. */
int verb_sandbox(int argc, char **argv);
