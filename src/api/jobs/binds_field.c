/* See binds_field.h. */

#include "api/jobs/binds_field.h"

#include "api/jobs/inputs.h"
#include "engine/live/live.h"

#include <string.h>

static const char *const modes[] = {"ro", "rw", NULL};
static const struct field bind_fields[] = {
    {.name = "host",
     .type = FIELD_STRING,
     .flags = FIELD_REQUIRED,
     .help = "an absolute path, without symbolic links"},
    {.name = "path",
     .type = FIELD_STRING,
     .flags = FIELD_REQUIRED,
     .help = "where it is in the sandbox, below /workspace"},
    {.name = "mode", .type = FIELD_STRING, .words = modes, .fallback = "\"ro\""},
};
const struct schema binds_schema = {"SandboxBind", bind_fields, 3, false};

int binds_add(struct engine *g, const json_t *binds, struct live_request *q, struct problem *p) {
    const json_t *asked;
    struct err e;
    size_t i;
    json_array_foreach(binds, i, asked) {
        const struct live_bind b = {.host = field_str(asked, "host", ""),
                                    .path = field_str(asked, "path", ""),
                                    .writable = strcmp(field_str(asked, "mode", "ro"), "rw") == 0};
        if (live_bind_add(g, q, &b, &e) == 0)
            continue;
        *p = problem_of(&e);
        return -1;
    }
    if (q->nbinds)
        q->binds_json = json_dumps(binds, JSON_COMPACT);
    return 0;
}

int binds_read(const struct call *c, struct live_request *q, struct problem *p) {
    return binds_add(c->api->o.engine, json_object_get(c->body, "binds"), q, p);
}
