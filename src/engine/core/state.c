/* See state.h. */

#include "engine/core/state.h"

#include "base/log.h"

#include <stdlib.h>

void state_check(const char *what, const uint8_t *next, unsigned from, unsigned to) {
    if (next[from] & 1u << to)
        return;
    log_error("%s moved from state=%u to state=%u", what, from, to);
    abort();
}
