#pragma once
/* How connections come in, and which of them go when there are too many. */

#include <stdbool.h>

struct http;

/* Connections that may be on their way out, beside the most that may be open. */
#define HTTP_LEAVING 256u

/* A connection that may be closed for a newcomer. */
struct http_waiter {
    struct http_waiter *older, *newer;
    bool listed;
    void (*evict)(struct http_waiter *w);
    void *arg;
};

/* All sockets are closed. */
void http_accept_no_more(struct http *h);
/* The door by which this connection came in, for its owner to free; or NULL. Asked once. */
char *http_door_of(struct http *h, int fd);
/* Lists it as the newest; one that is listed already keeps its place. */
void http_wait(struct http *h, struct http_waiter *w);
/* It is not to be evicted any more. */
void http_unwait(struct http *h, struct http_waiter *w);
