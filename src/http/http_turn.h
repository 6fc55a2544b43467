#pragma once
/* Shares a turn of the loop among the connections that have something to do. */

#include <stdbool.h>

struct http;
struct http_conn;

void http_turn_init(struct http *h);
/* The library runs from begin to end. */
void http_turn_begin(struct http *h);
void http_turn_end(struct http *h);
/* Whether it may run once more: there is time left, and nobody waits for another turn. */
bool http_turn_has_room(struct http *h);
/* Where the library is about to do something for the connection. False: not in this turn of the
 * loop; the connection sleeps until its turn comes, and the library calls again then. */
bool http_may_go(struct http_conn *c);
/* The same for a request that is about to begin. */
bool http_may_begin(struct http_conn *c);
/* The same for a piece of its body, however small: a connection has so many in a turn. */
bool http_may_take_piece(struct http_conn *c);
/* To sleep until another turn, whoever else waits. */
void http_put_off(struct http_conn *c);
/* It waits for no turn any more: it has to end, or is gone. */
void http_turn_now(struct http_conn *c);
void http_turn_leave(struct http_conn *c);
