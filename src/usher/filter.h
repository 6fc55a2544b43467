#pragma once
/* The system calls that an usher has left. */

#include "base/err.h"

#define FILTER_CHANNEL 3 /* the channel to init, */
#define FILTER_NAMES   4 /* and behind it the sockets for names, USHER_NAMES of them */

/* For good. Whatever is not in the list ends the process. */
int filter_enter(struct err *e);
