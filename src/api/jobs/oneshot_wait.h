#pragma once
/* The whole way from a body that execute_schema would take (`shows`: run_schema) to one reply, also
 * for those who say the result in words of their own. For api/ only. */

#include "api/jobs/oneshot.h"

struct oneshot_way {
    uint32_t flags;
    bool own_bounds, no_files, all_network, shows; /* see oneshot_options */
    int form; /* the caller's own: which of its replies `put` writes */
    /* The reply, and its status; NULL: the result as it is. */
    int (*put)(const struct oneshot_way *way, const struct oneshot *x, struct rope *to);
};
void oneshot_wait(struct call *c, const json_t *body, const struct oneshot_way *way);
