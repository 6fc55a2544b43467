#pragma once
/* The verbs of the command line: `cloche VERB …`. argv[0] is the verb itself; the value is the
 * process's exit status. One file a verb. */

/* cloche's own failures, whatever the verb; a program's status passes through `run` as it is. */
#define EXIT_CLOCHE 125

int verb_run(int argc, char **argv);
int verb_sandbox(int argc, char **argv); /* and `cloche shell` */
int verb_serve(int argc, char **argv);
int verb_status(int argc, char **argv);
int verb_doctor(int argc, char **argv);
int verb_config(int argc, char **argv);
int verb_key(int argc, char **argv);
