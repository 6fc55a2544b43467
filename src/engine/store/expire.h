#pragma once
/* Files go when their time is over. All live equally long, so one timer, set to the oldest's end,
 * is enough. */

#include "engine/store/internal.h"

bool expire_is_old(const struct store *s, const struct store_entry *e, double now);
/* Removes what is too old, a bounded number of files at once; how many. */
unsigned expire_sweep(struct store *s);
/* Unless it is set already. */
void expire_set_timer(struct store *s);
void expire_on_timer(struct timer *t);
