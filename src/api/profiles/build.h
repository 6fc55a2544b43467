#pragma once
/* A profile is built: py/profile/build.py runs in a sandbox as a program of the tenant's, what it
 * packed is taken apart beside the loop, and only what is whole becomes a profile. It goes on
 * without its client. For api/ only. */

#include "api/core/call.h"

struct own_profile;

/* `p` is new. -1 with a problem, and then it is as it was. Afterwards it is ready or broken, at the
 * end of its record (records.h). */
int build_begin(const struct caller *who, struct own_profile *p, struct problem *ret);
/* It is called off, and the profile with it. */
void build_cancel(struct own_profile *p);
/* What its record says: lines, and at the end the profile. */
extern const struct schema build_events_schema;
