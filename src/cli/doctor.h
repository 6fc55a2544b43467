#pragma once
/* `cloche doctor`: what isolation this machine gives. argv[0] is the verb itself; the value is the
 * exit status. */

int verb_doctor(int argc, char **argv);
