#pragma once
/* What the next server has to know of a live sandbox; for live/ only. */

struct engine;
struct live;
struct wire_in;

void live_keep_init(struct live *l);
void live_keep(struct live *l);
/* Something of what the next server has to know is different now. */
void live_changed(struct live *l);
/* An event was told. */
void live_said(struct live *l);
/* From W_KEPT. */
void live_adopt(struct engine *g, struct wire_in *in);
