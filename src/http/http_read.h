#pragma once
/* What the library reads goes through here; the theory is in http_read.c. */

struct http;
struct http_conn;

/* The library runs, on this thread, from begin to end. */
void http_read_begin(struct http *h);
void http_read_end(void);
/* The library reads this connection. */
void http_read_add(struct http_conn *c);
void http_read_remove(struct http_conn *c);
