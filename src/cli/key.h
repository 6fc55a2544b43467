#pragma once
/* `cloche key`: the API keys of the HTTP service. argv[0] is the verb itself; the value is the exit
 * status. */

int verb_key(int argc, char **argv);
