#pragma once
/* A listening socket on the loop. Whoever waits to be let in keeps it ready: when there is no
 * descriptor left for a connection, it is not watched for a moment, or the loop would turn without
 * a pause until somebody leaves. */

#include "loop/loop.h"

#include <sys/socket.h>

struct acceptor {
    struct loop *loop; /* borrowed */
    int fd;            /* borrowed */
    struct watch watch;
    struct timer again;
    void (*fn)(struct acceptor *a); /* somebody may be there: acceptor_next tells */
    void *arg;
};

/* `fn` and `arg` are set; the socket becomes non-blocking. */
int acceptor_start(struct acceptor *a, struct loop *l, int fd, struct err *e);
void acceptor_stop(struct acceptor *a);
/* The next connection (close-on-exec, non-blocking), or -1. `from` and `ret_len` may be NULL. */
int acceptor_next(struct acceptor *a, struct sockaddr_storage *from, socklen_t *ret_len);
