#pragma once
/* What the files of live/ share of live.c. */

#include "engine/process/live_state.h"

/* One from an earlier server; keep.c fills it in between these. */
struct live *live_inherit(struct engine *g, struct sandbox *s);
void live_inherited(struct live *l, uint32_t processes);
void live_disown(struct live *l);
