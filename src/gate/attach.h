#pragma once
/* Sandboxes as the gate has them: attached by the server, asked by their init, and gone with it. */

#include "gate/gate.h"

/* What the server says. -1: nothing that a server may say. */
int attach_serve(struct gate *g, struct wire_in *in, struct err *e);
/* It has no network from here on; what it has open stays with it. Freed at the end of the turn. */
void attach_end(struct attachment *a);
/* None of its connections is being closed any more. */
void attach_closed(struct attachment *a);
void attach_send(struct attachment *a, const struct wire_out *o);
