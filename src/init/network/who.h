#pragma once
/* Which process asked for a name. */

#include <stdint.h>
#include <sys/types.h>

/* One that has the UDP socket of this port open; 0: none was found. `diag` as diag_open made it. */
pid_t who_asks(int diag, int family, uint16_t port);
