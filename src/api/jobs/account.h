#pragma once
/* What remains of an execution: counters, the key's CPU time, the line in the audit log. For api/
 * only. */

#include "api/core/caller.h"
#include "engine/core/outcome.h"

struct audit_code;

/* `why`: the kind of error for which it has no result; NULL: it has one. */
void account_execution(const struct caller *who, const char *id, const struct audit_code *code,
                       const struct receipt *t, const char *why);
