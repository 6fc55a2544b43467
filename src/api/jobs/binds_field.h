#pragma once
/* The member `binds` of a request: directories of the host in a live sandbox's workspace, of those
 * that the operator allows (bind_allow). For api/ only. */

#include "api/core/call.h"

struct engine;
struct live_request;

#define BINDS_MAX 16

extern const struct schema binds_schema;
#define FIELD_OF_BINDS(text)                                                                       \
    {                                                                                              \
        .name = "binds", .type = FIELD_LIST, .of = &binds_schema, .flags = FIELD_MAX,              \
        .max = BINDS_MAX, .fallback = "[]", .help = (text)                                         \
    }

/* The list; NULL is none. -1 with a problem; what is in *q is the caller's in any case. */
int binds_add(struct engine *g, const json_t *binds, struct live_request *q, struct problem *p);
/* Of the call's body. */
int binds_read(const struct call *c, struct live_request *q, struct problem *p);
