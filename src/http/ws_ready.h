#pragma once
/* WebSockets whose peers have sent something. */

struct http;
struct ws;

void ws_ready_init(struct http *h);
/* It is read at the end of the batch, or of one of the next: see ws_read(). */
void ws_ready_add(struct ws *w);
void ws_ready_remove(struct ws *w);
