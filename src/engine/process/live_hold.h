#pragma once
/* Whether a live sandbox is in use, and when its time is up. */

#include <stdbool.h>

struct live;

/* It is in use: not idle until as many live_release. For requests that last. */
void live_hold(struct live *l);
void live_release(struct live *l);
bool live_is_held(const struct live *l);
/* For the engine only: its end comes when its time is up, or it was idle for too long. */
void live_set_timer(struct live *l);
