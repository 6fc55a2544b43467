#pragma once
/* Replies on their way to the library. What handlers call is in http.h. */

#include <microhttpd.h>
#include <stdbool.h>

struct http_req;

/* Gives the reply to the library. */
enum MHD_Result http_queue(struct http_req *r);
/* The reply after which the connection speaks something else; false when none is possible. */
bool http_switch(struct http_req *r, void *arg, MHD_UpgradeHandler fn);
