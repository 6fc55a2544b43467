/* The environment of a Jupyter kernel. As in the kernel gateway: what the operator set, then of the
 * request what begins with KERNEL_ or is on the operator's list; KERNEL_GATEWAY is the gateway's.
 */

#include "api/dialects/jupyter/jupyter.h"
#include "api/jobs/inputs.h"
#include "engine/core/bounds.h"

#include <stdlib.h>
#include <string.h>

#define PREFIX "KERNEL_"
#define MARK   "KERNEL_GATEWAY"

static bool is_listed(const char *list, const char *name) {
    size_t len = strlen(name);
    while (*list) {
        size_t n = strcspn(list, ",");
        if (n == len && strncmp(list, name, n) == 0)
            return true;
        list += n + (list[n] == ',');
    }
    return false;
}

static bool is_allowed(const struct config_jupyter *own, const char *name) {
    return strncmp(name, PREFIX, strlen(PREFIX)) == 0 || is_listed(own->allow_env, "*") ||
           is_listed(own->allow_env, name);
}

int jupyter_set_env(struct call *c, struct problem *p) {
    const struct config_jupyter *own = &c->api->config->jupyter;
    json_t *env = json_loads(own->env, 0, NULL); /* resolve.c has checked it */
    const char *name;
    json_t *value;
    if (env_check(c->body, p) < 0) {
        json_decref(env);
        return -1;
    }
    json_object_foreach(json_object_get(c->body, "env"), name, value) {
        if (is_allowed(own, name))
            json_object_set(env, name, value);
    }
    json_object_set_new(env, MARK, json_string("1"));
    json_object_set_new(c->body, "env", env);
    if (json_object_size(env) > RUN_MAX_ENV)
        return problem_set(p, "bad_value",
                           "env has more variables than 256, with those of this server");
    return env_check_kept(c->body, p);
}
