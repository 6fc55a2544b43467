#pragma once
/* Connections: how they begin, sleep, and end. */

#include <microhttpd.h>
#include <stdbool.h>

struct http_conn;
struct http_req;

struct http_conn *http_conn_of(struct MHD_Connection *mhd);
/* For the library: a connection begins or ends. */
void http_conn_notify(void *arg, struct MHD_Connection *mhd, void **context,
                      enum MHD_ConnectionNotificationCode code);
/* Something came of a request whose body may not be whole. */
void http_conn_ack(struct http_conn *c);
/* The library has read, and perhaps all that there was. */
void http_conn_drained(struct http_conn *c, bool all);
/* The client sends no more: looks whether it is still there. */
void http_conn_probe(struct http_conn *c);
/* A request ended before its time: the library is to look at its connection again. */
void http_conn_look(struct http_conn *c);

/* The connection of a request that waits for its reply is suspended, and resumed for the reply. */
void http_sleep(struct http_req *r);
void http_wake(struct http_req *r);
void http_cut(struct http_req *r);
