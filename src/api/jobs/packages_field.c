/* See packages_field.h. The kernel hands them to pip behind "--", so none is an option of pip's. */

#include "api/jobs/packages_field.h"

#include "api/core/problem.h"
#include "base/buf.h"
#include "config/config.h"
#include "engine/oneshot/run.h"

#include <jansson.h>
#include <string.h>

#define MAX_NAME     300
#define MAX_TOGETHER 8192
#define USUAL_MS     60000 /* unless the request says how long it may take */

static bool is_requirement(const char *text, size_t len) {
    if (len == 0 || len > MAX_NAME || *text == '-')
        return false;
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
            return false;
    }
    return true;
}

static uint32_t at_most(uint32_t wanted, uint32_t most) {
    return most && wanted > most ? most : wanted;
}

/* What pip needs is more than most programs do. */
static void make_room(const struct config *c, struct limits *l) {
    if (!l->timeout_ms)
        l->timeout_ms = at_most(USUAL_MS, c->maxima.timeout_ms);
    if (!l->cpu_seconds)
        l->cpu_seconds = at_most((l->timeout_ms + 999) / 1000, c->maxima.cpu_seconds);
    if (!l->disk_mb)
        l->disk_mb = at_most(c->live.disk_mb, c->maxima.disk_mb);
}

int packages_read(const struct caller *who, const json_t *body, struct run_request *q,
                  struct problem *p) {
    const json_t *list = json_object_get(body, "packages"), *v;
    AUTO_BUF names = BUF_INIT;
    size_t i;
    if (json_array_size(list) == 0)
        return 0;
    json_array_foreach(list, i, v) {
        const char *text = json_string_value(v);
        if (!is_requirement(text, json_string_length(v)))
            return problem_set(p, "bad_value",
                               "packages[%zu] is no requirement of pip's, as \"polars\" or "
                               "\"rich>=13\"",
                               i);
        buf_addf(&names, "%s%s", i ? "\n" : "", text);
    }
    if (names.len > MAX_TOGETHER || q->nenv == RUN_MAX_ENV)
        return problem_set(p, "bad_value",
                           q->nenv == RUN_MAX_ENV
                               ? "env has no room for packages: one variable less"
                               : "packages have more than 8192 bytes together");
    q->flags |= RUN_PACKAGES;
    q->env = xrealloc(q->env, (q->nenv + 2) * sizeof *q->env);
    q->env[q->nenv++] = buf_take(&names);
    make_room(who->api->config, &q->limits);
    return 0;
}
