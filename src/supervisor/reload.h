#pragma once
/* SIGHUP at `cloche serve`: which profiles there are now. */

#include "base/err.h"

struct config;

/* Notes the state of what profiles are made of (interpreter, sites), so that a change there is one.
 */
void reload_stamp(struct config *c);
/* Takes the profiles of `next` into `c`. Those that `c` has keep their place; those that `next` has
 * not are marked as removed. On failure c is as it was. `next` is what is left over, for
 * config_done. */
int reload_merge(struct config *c, struct config *next, struct err *e);
