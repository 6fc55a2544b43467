#pragma once
/* `cloche run`: run a program in a fresh sandbox. argv[0] is the verb itself; the value is the exit
 * status. */

int verb_run(int argc, char **argv);
