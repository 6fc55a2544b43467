#pragma once
/* The dialect ipybox, for routes.c. */

#include "api/core/call.h"

#define IPYBOX "ipybox"

int ipybox_tell(const struct call *c, const struct problem *p, struct buf *to);
