#pragma once
/* Who may ask: hosts and origins, keys, and the record of it. For api/ only. */

#include "api/core/call.h"

bool access_check_origin(struct call *c, struct problem *ret);
/* An OPTIONS request of a browser: true when it was answered. */
bool access_preflight(struct call *c);
bool access_check_key(struct call *c, struct problem *ret);
void access_log(const struct call *c, double seconds);
