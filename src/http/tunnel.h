#pragma once
/* Connections that speak another protocol now, to somebody behind us: for the end of their
 * requests. Handlers call http_tunnel (http.h). */

struct http;
struct tunnel;

/* The request is over; it is freed; the server stops. */
void tunnel_over(struct tunnel *t);
void tunnel_free(struct tunnel *t);
void tunnel_drain(struct http *h);
