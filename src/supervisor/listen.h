#pragma once
/* The engine's socket, from both sides: SEQPACKET, mode 0600. */

#include "base/err.h"

#include <sys/types.h>

struct listener {
    int fd;     /* owned */
    char *path; /* owned */
    dev_t dev;  /* of the socket's name: what we remove must still be ours */
    ino_t ino;
};

/* Makes the socket's directory if need be (not its parents). A socket on which nobody answers is
 * replaced; one with an engine behind it is an error of kind "engine_running". */
int listen_at(const char *path, struct listener *ret, struct err *e);
/* Closes it and removes its name. Accepts what listen_at never filled (fd -1). */
void listen_done(struct listener *l);

/* Kind "no_engine" when nobody listens there. */
int listen_connect(const char *path, int *ret_fd, struct err *e);

/* A listening socket with one connection to it already waiting, and no name left anywhere. */
int listen_private(int *ret_listen, int *ret_conn, struct err *e);
