#pragma once
/* What a channel needs to read no more than its share of a turn; for chan.c only. */

#include "wire/chan.h"

/* False when this turn's time is spent: the channel waits, and is read in a later one. */
bool chan_share_may_read(struct chan *c);
/* A message was read and handled. */
void chan_share_spend(struct chan_share *s, uint64_t since_ns);
/* chan.c: which events are waited for. */
void chan_update(struct chan *c);
