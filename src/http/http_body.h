#pragma once
/* The body of a request: kept whole up to a bound, or handed on piece by piece. What handlers
 * call is in http.h. */

#include <stdbool.h>
#include <stddef.h>

struct http_req;

/* The library has read a piece of the body; it has read all of it; the request is over. */
void http_body_data(struct http_req *r, const char *data, size_t len);
void http_body_end(struct http_req *r);
void http_body_done(struct http_req *r);
/* Counts what a request has or will have in memory; false when that is too much for all together,
 * or for the account of the request. */
bool http_reserve(struct http_req *r, size_t len);
void http_release(struct http_req *r);
/* The end of http_hold in the midst of a body. */
void http_body_go_on(struct http_req *r);
/* Whether to drain the body before replying. */
bool http_body_drains(const struct http_req *r);
