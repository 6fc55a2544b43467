#pragma once
/* A live sandbox gets another network, and the client hears of it when that is in force. For api/
 * only. */

#include "api/core/call.h"
#include "api/jobs/network_field.h"

struct live;

/* Takes *t; answers by `reply`, or with what is wrong. */
void network_change(struct call *c, struct live *l, struct network_terms **t,
                    void (*reply)(struct call *c, struct live *l));
