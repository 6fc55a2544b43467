#pragma once
/* What waits for clients to read it, of one connection and of all together. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct http;
struct http_req;

void http_held_init(struct http *h);
/* Whether a client that has `backlog` bytes still to read gets no more of them. */
bool http_is_too_much(const struct http *h, size_t backlog, size_t len, size_t *beyond);
void http_weigh(struct http_req *r);  /* what the reply holds has changed */
void http_took(struct http_req *r);   /* the client has taken something */
void http_let_go(struct http_req *r); /* frees all that the reply holds */
