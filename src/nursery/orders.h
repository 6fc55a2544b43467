#pragma once
/* All that the warden may ask a nursery for: see orders.c. */

#include "nursery/nursery.h"

/* False when the warden may not ask that now, or what it says makes no sense. */
bool orders_serve(struct nursery *n, struct wire_in *in);
bool orders_allows(enum wire_type type, enum box_state state);
