#pragma once
/* The verbs that reach a server over HTTP; as in cli/verbs.h. */

int remote_run(int argc, char **argv);
int remote_status(int argc, char **argv);
/* `cloche sandbox VERB` and `cloche shell`. */
int remote_sandbox(int argc, char **argv);
