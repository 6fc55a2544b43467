#pragma once
/* What the next server has to know of a live sandbox; for live/ only. */

struct engine;
struct live;
struct wire_in;

void live_keep_init(struct live *l);
void live_keep(struct live *l);
/* From W_KEPT. */
void live_adopt(struct engine *g, struct wire_in *in);
