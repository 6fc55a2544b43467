#pragma once
/* How a program, a cell or a command ended: what is the same for all of them. */

#include "engine/core/denials.h"

#include <stdint.h>

/* The result in short, for counters and logs; lives as long as the one it is of. */
struct receipt {
    const char *status, *profile;
    double wall_ms, queue_ms, cpu_ms;
    uint64_t memory_peak;
    uint32_t timeout_ms; /* what it had */
    const char *refused; /* why the policy did not let it begin, or NULL */
    const struct denials *denied;
};

/* `denied` and `usage`, into an object that is open. */
void receipt_put(struct jw *j, const struct receipt *t, uint64_t memory_peak,
                 uint64_t output_bytes);
