#pragma once
/* Which process asked for a name. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A descriptor of a process; pid 0: none. */
struct who {
    pid_t pid;
    int fd;
};

/* One that has the UDP socket of this port open; pid 0: none was found. `diag` as diag_open made
 * it. It is cheap to find that it is `guess`, who asked before; `search`: look at all others, too.
 */
struct who who_asks(int diag, int family, uint16_t port, struct who guess, bool search);
