#pragma once
/* The limits (struct limits, from the list LIMITS) in requests. For api/ only. */

#include "api/core/call.h"
#include "config/config.h"
#include "http/fields.h"

/* The object `limits` of programs and sandboxes; that of a further kernel. */
extern const struct schema limits_schema, kernel_limits_schema;

/* `limits`, and the timeout_ms beside it; 0 where the request says nothing. */
int limits_read(const json_t *body, uint32_t timeout_max, struct limits *ret, struct problem *p);
/* What an execution in a live sandbox has beside its code: timeout_ms, cpu_seconds, … */
void limits_read_execution(const json_t *body, struct limits *ret);
