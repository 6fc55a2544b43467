#pragma once
/* Replies on their way to the library. What handlers call is in http.h. */

#include <microhttpd.h>
#include <stdbool.h>

struct http_req;
struct ws;

/* Gives the reply to the library. */
enum MHD_Result http_queue(struct http_req *r);
/* The reply after which the connection is the WebSocket's; false when none is possible. */
bool http_switch(struct http_req *r, struct ws *w, MHD_UpgradeHandler fn);
