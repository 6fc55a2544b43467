#pragma once
/* Answers by Idempotency-Key: the same key and body gets the same answer without running twice,
 * also while the first is still under way and when its client has gone. Kept for an hour, in
 * bounded memory; an answer that says "try again" is not kept. */

#include "api/call.h"

struct replays *replays_new(void);

/* Executes the call's body, or joins the one under way, or answers again. */
void replay_execute(struct call *c, const char *key);
