#pragma once
/* `cloche config`: every setting, its value and where it came from. argv[0] is the verb itself; the
 * value is the exit status. */

int verb_config(int argc, char **argv);
