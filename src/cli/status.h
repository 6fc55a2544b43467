#pragma once
/* `cloche status`: how a running engine or server is doing. argv[0] is the verb itself; the value
 * is the exit status. */

int verb_status(int argc, char **argv);
