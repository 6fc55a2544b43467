#pragma once
/* How connections come in, and which of them go when there are too many. */

#include <stdbool.h>

struct acceptor;
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

void http_accept(struct acceptor *a);
/* Lists it as the newest; one that is listed already keeps its place. */
void http_wait(struct http *h, struct http_waiter *w);
/* It is not to be evicted any more. */
void http_unwait(struct http *h, struct http_waiter *w);
