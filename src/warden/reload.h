#pragma once
/* The profiles anew, while everything runs: see reload.c. */

#include "warden/warden.h"

/* L_CONFIG. */
void reload_serve(struct warden *w, struct wire_in *in);
