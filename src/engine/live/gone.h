#pragma once
/* Live sandboxes that are no more, and why: remembered for those who still ask for them, also by
 * the next server and the next warden. */

#include "base/err.h"

struct gone;

/* `dir` is borrowed: where the list is kept between servers; -1: nowhere. */
struct gone *gone_open(int dir);
/* It is there from now on: a server that finds it in the list, and no sandbox of that name, knows
 * that it was lost. */
void gone_expect(struct gone *g, const char *tenant, const char *id);
void gone_add(struct gone *g, const char *tenant, const char *id, const char *reason);
/* NULL when nothing is known of it. */
const char *gone_find(const struct gone *g, const char *tenant, const char *id);
