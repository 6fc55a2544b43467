#pragma once
/* The clients of the engine's socket: one program at a time on each connection. */

#include "engine/core/engine.h"

struct clients;
/* Borrows the listening socket. */
int clients_new(struct engine *g, int listen_fd, struct clients **ret, struct err *e);
