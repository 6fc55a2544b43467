#pragma once
/* What whoever started the engine is told: a line each, on the descriptor for that. */

#include "warden/warden.h"

void warden_say(struct warden *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
