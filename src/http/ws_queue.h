#pragma once
/* Messages that wait for a WebSocket's peer. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct blob;
struct loop_share;
struct ws;

void ws_queue_add(struct ws *w, uint8_t opcode, struct blob *of);
/* Sends the first message, or as many as the peer takes in a turn, and as the share has time for.
 * False: the peer is gone. */
bool ws_queue_send(struct ws *w, bool all, struct loop_share *s);
/* Drops all; as long as the WebSocket is not over, without the one that has begun. That may take a
 * while: false when the rest is for another turn. ws_queue_give_up puts it off, for when the turn
 * of the WebSocket has come. */
bool ws_queue_drop(struct ws *w);
void ws_queue_give_up(struct ws *w);
bool ws_queue_is_inside(const struct ws *w); /* a message has begun and is not through */
size_t ws_queue_cost(const struct ws *w);    /* bytes beside those of the messages */
