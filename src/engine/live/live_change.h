#pragma once
/* What can be changed of a live sandbox while it lives. */

#include "base/err.h"
#include "wire/limits.h"

#include <stdbool.h>
#include <stdint.h>

struct live;

/* Freeze and thaw. Executions do not begin, and their clocks stand still, while it is paused. */
int live_pause(struct live *l, bool pause, struct err *e);
struct live_change {
    const char *metadata, *name; /* NULL: as it is */
    const struct limits *limits; /* fields that are 0 stay; or NULL */
    uint32_t ttl_s, idle_s;      /* 0: as it is; else it counts from now */
};
/* Whoever serves it listens there for it; 0: not any more. */
void live_set_port(struct live *l, uint16_t port);
int live_change(struct live *l, const struct live_change *c, struct err *e);
