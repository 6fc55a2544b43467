#pragma once
/* Who asks: all that a job has to know of its request, which may be over before the job is. For
 * api/ only. */

#include "keys/keys.h"

#include <stdio.h>

struct api;

struct caller {
    struct api *api;  /* borrowed: outlives all of its callers */
    char tenant[65];  /* "default" without a key */
    char key[24];     /* the id of the key; "" without one */
    char request[40]; /* the id of the request, for logs and the X-Request-Id header */
    struct key_limits limits;
    uint32_t rights; /* of enum key_right; all of them without keys */
};

static inline void caller_is(struct caller *who, const struct key *key) {
    snprintf(who->tenant, sizeof who->tenant, "%s", key->tenant);
    snprintf(who->key, sizeof who->key, "%s", key->id);
    who->limits = key->limits;
    who->rights = key->rights;
}
