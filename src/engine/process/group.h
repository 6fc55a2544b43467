#pragma once
/* Limits of a kernel's own, and what a control group tells. */

#include "base/schema.h"
#include "config/config.h"
#include "engine/core/cgroup_fds.h"

struct jw;
struct live;
struct process;

/* What a kernel gets that asks for this (or NULL); memory_mb is 0 when it is no group of its own.
 */
int group_settle(const struct live *l, const struct limits *want, struct limits *ret,
                 struct err *e);
/* What the process is told to hold itself to: without what its control group does better. */
struct limits group_self_limits(const struct process *p);
/* The limits are no higher than these. */
int group_lower(struct process *p, const struct limits *most, struct err *e);
/* Of the process's own group, also when it has just ended, or of the sandbox's. */
struct cgroup_usage group_usage(struct process *p); /* events: since the last call */
uint64_t group_cpu_us(const struct process *p);
uint64_t group_peak(const struct process *p); /* bytes */
bool group_ran_out_of_memory(const struct process *p);
/* The process has ended. */
void group_leave(struct process *p);
/* Members of an object: limits, and usage if it has some. */
extern const struct schema group_usage_schema;
void group_json(const struct process *p, struct jw *j);
