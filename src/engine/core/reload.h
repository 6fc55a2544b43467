#pragma once
/* Other profiles than before (W_RELOAD). */

struct engine;
struct wire_in;

void engine_reload(struct engine *g, struct wire_in *in);
