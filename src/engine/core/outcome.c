/* See outcome.h. */

#include "engine/core/outcome.h"

#include "base/json.h"

void receipt_put(struct jw *j, const struct receipt *t, uint64_t memory_peak,
                 uint64_t output_bytes) {
    denials_put(t->denied, j);
    jw_key(j, "usage");
    jw_object(j);
    jw_key_real(j, "wall_ms", t->wall_ms);
    jw_key_real(j, "queue_ms", t->queue_ms);
    jw_key_real(j, "cpu_ms", t->cpu_ms);
    jw_key_uint(j, "memory_peak_bytes", memory_peak);
    jw_key_uint(j, "output_bytes", output_bytes);
    jw_object_end(j);
}
