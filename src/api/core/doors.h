#pragma once
/* Doors: ports of loopback that mean one live sandbox each. Clients of services that have a port
 * for every container find that sandbox there, at the paths of the dialects that say so (at_doors
 * of struct dialect), with the keys of the main port. For api/ only. */

#include "api/core/call.h"

#include <stdbool.h>

struct live;

/* Whether the tenant may have one more; -1 with a problem. */
int doors_room(const struct api *a, const char *tenant, struct problem *p);
/* A door to that sandbox, until it ends; its port is in the sandbox's view. */
int doors_open(struct api *a, struct live *l, struct problem *p);
/* Those of sandboxes that an earlier server had, at the same ports. */
void doors_adopt(struct api *a);

/* Whether the call came in by a door. */
bool call_at_door(const struct call *c);
/* Whether this sandbox is meant: any is, unless the call came in by the door of another. */
bool call_means(const struct call *c, const struct live *l);
/* The sandbox behind the call's door, which is the caller's; NULL: it has its reply. */
struct live *call_door_live(struct call *c);
