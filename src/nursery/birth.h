#pragma once
/* The nursery's first stage: builds what sandboxes will see, then becomes root of a user namespace
 * of its own, and only there. */

#include "config/config.h"
#include "sandbox/idmap.h"

/* Never returns: on success the second stage runs in another process (a child of our parent), on
 * failure N_STATE says why on `chan`. `chan` and `config_fd` stay open into the second stage. */
_Noreturn void birth(const struct config *c, unsigned profile, const struct idmap *ids, int chan,
                     int config_fd);

/* Numbers of the descriptors that the second stage finds open. */
#define NURSERY_CHAN   3
#define NURSERY_CONFIG 4
