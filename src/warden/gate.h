#pragma once
/* The gate as seen by the warden: a process that is started, brought together with the server, and
 * started again when it dies. Sandboxes without a network do not notice it. */

#include "warden/warden.h"

void gate_init(struct warden *w);
/* Starts it, now or, when that fails, later. */
void gate_start(struct warden *w);
/* A channel between gate and server, whenever one of them is new. */
void gate_meet(struct warden *w);
/* Another configuration. */
void gate_tell_config(struct warden *w);
void gate_reaped(struct warden *w, int status);
/* Kills it; it is reaped with all the others. */
void gate_end(struct warden *w);
