#pragma once
/* The connections: see relay.c. */

#include "usher/internal.h"

void relay_new(struct usher *u, struct wire_in *in, const struct u_relay *m);
void relay_step(struct usher *u, uint32_t id, enum side side, uint32_t events);
void relay_close(struct usher *u, uint32_t id);
void relay_helloed(struct usher *u, const struct u_helloed *m);
void relays_look_after(struct usher *u);
