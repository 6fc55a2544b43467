#pragma once
/* The frames of a WebSocket, through libwslay. */

#include <stdbool.h>
#include <stddef.h>

struct ws;

void ws_frames_init(struct ws *w);
/* Reads what the peer has sent, as much as one turn of the loop allows. False: the peer is gone. */
bool ws_frames_take(struct ws *w);
/* Neither the owner nor what waits for the peer forbids it. */
bool ws_frames_may_read(const struct ws *w);
/* Bytes that came with the handshake and are still to be read: no event tells of them. */
size_t ws_frames_early(const struct ws *w);
/* The peer has taken so many bytes of ours. */
void ws_frames_took(struct ws *w, size_t n);
