#pragma once
/* `cloche serve`: keep an engine with warm sandboxes running. argv[0] is the verb itself; the value
 * is the exit status. */

int verb_serve(int argc, char **argv);
