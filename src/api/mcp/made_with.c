/* See made_with.h. */

#include "api/mcp/made_with.h"

#include "api/core/api_state.h"
#include "api/core/problem.h"
#include "api/jobs/binds_field.h"
#include "api/jobs/inputs.h"
#include "api/jobs/request_fields.h"
#include "base/json.h"
#include "engine/live/live.h"
#include "http/fields.h"
#include "http/http.h"

#include <string.h>

#define HEADER "Cloche-Sandbox"
#define DEPTH  4

static const struct field with_fields[] = {
    FIELD_OF_ENV("environment variables of its kernels and commands"),
    FIELD_OF_BINDS("directories of the host in its workspace"),
};
static const struct schema with_schema = {SCHEMA("", with_fields)};

/* The first fault, in words. */
static int tell_fault(struct buf *faults, struct problem *p) {
    struct err ignored;
    json_auto_t *all = NULL;
    AUTO_BUF where = BUF_INIT;
    const json_t *part;
    size_t i;
    if (json_read(faults->data, faults->len, JSON_DEPTH_MAX, &all, &ignored) < 0)
        return problem_set(p, "bad_value", HEADER " is not as it must be");
    const json_t *first = json_array_get(all, 0);
    json_array_foreach(json_object_get(first, "loc"), i, part) {
        if (json_is_string(part))
            buf_addf(&where, "%s%s", where.len ? "." : "", json_string_value(part));
        else
            buf_addf(&where, "[%lld]", (long long)json_integer_value(part));
    }
    return problem_set(p, "bad_value", HEADER ": %.200s: %.200s", where.data,
                       field_str(first, "msg", "it is not as it must be"));
}

int made_with_read(const struct call *c, json_t **ret, struct problem *p) {
    const char *text = http_header(c->req, HEADER);
    json_auto_t *with = NULL;
    AUTO_BUF faults = BUF_INIT;
    struct jw j = JW_INIT(&faults);
    struct err e;
    *ret = NULL;
    if (!text)
        return 0;
    if (json_read(text, strlen(text), DEPTH, &with, &e) < 0 || !json_is_object(with))
        return problem_set(p, "bad_value", HEADER " must be a JSON object: {\"env\", \"binds\"}");
    jw_array(&j);
    unsigned n = fields_check(&with_schema, with, &j);
    jw_array_end(&j);
    if (n)
        return tell_fault(&faults, p);
    if (env_check_kept(with, p) < 0)
        return -1;
    *ret = json_incref(with);
    return 0;
}

int made_with_fill(struct api *a, const json_t *with, struct live_request *q, struct problem *p) {
    if (!with)
        return 0;
    q->env = field_dump(with, "env");
    return binds_add(a->o.engine, json_object_get(with, "binds"), q, p);
}
