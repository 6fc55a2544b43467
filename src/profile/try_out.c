/* See try_out.h. */

#include "profile/try_out.h"

#include "base/buf.h"
#include "config/config.h"
#include "config/options.h"
#include "config/profile_read.h"
#include "profile/script.h"
#include "supervisor/trial.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static bool has_live(const struct options *o) {
    return strcmp(options_text(o, "live"), "on") == 0;
}

static int try_modules(const struct trying *t, json_t **ret, struct err *e) {
    json_auto_t *plan = json_object();
    json_t *names = json_array();
    for (unsigned k = 0; k < t->profile->preload.n; k++)
        json_array_append_new(names, json_string(t->profile->preload.items[k]));
    json_object_set_new(plan, "preload", names);
    const struct script s = {
        .name = "try_out", .plan = plan, .out = t->out, .limits = t->limits, .like = t->profile};
    if (script_run(t->options, &s, ret, e) < 0)
        return -1;
    const char *why = json_string_value(json_object_get(*ret, "error"));
    return why ? err_user(e, "build_failed", "%.300s", why) : 0;
}

bool try_is_lazy(const json_t *found, const char *module) {
    const json_t *one;
    size_t i;
    json_array_foreach(json_object_get(found, "lazy"), i, one) {
        const char *name = json_string_value(json_object_get(one, "name"));
        if (name && strcmp(name, module) == 0)
            return true;
    }
    return false;
}

static void add_tried(struct config *c, const struct trying *t, const json_t *found, bool is_live) {
    AUTO_BUF name = BUF_INIT;
    buf_addf(&name, "%s%s", t->profile->name, is_live ? CONFIG_LIVE : "");
    struct config_profile *p = script_add_profile(c, name.data, t->profile);
    p->live = is_live;
    for (unsigned k = 0; k < t->profile->preload.n; k++) {
        if (!try_is_lazy(found, t->profile->preload.items[k]))
            profile_list_add(&p->preload, t->profile->preload.items[k]);
    }
}

static int start_both(const struct trying *t, json_t *found, struct err *e) {
    struct config c;
    struct trial trial[1] = {0};
    if (script_config(t->options, &c, e) < 0)
        return -1;
    add_tried(&c, t, found, false);
    if (has_live(t->options))
        add_tried(&c, t, found, true);
    int rc = trial_run(&c, trial, 1, e);
    config_done(&c);
    if (rc == 0 && trial[0].programs.state != TRIAL_READY)
        rc = err_user(e, "build_failed", "%.300s", trial[0].programs.why);
    if (rc < 0)
        return -1;
    const char *how = trial[0].live.state == TRIAL_READY    ? "ready"
                      : trial[0].live.state == TRIAL_BROKEN ? trial[0].live.why
                                                            : "off";
    json_object_set_new(found, "live", json_string(how));
    return 0;
}

int try_out(const struct trying *t, json_t **ret, struct err *e) {
    if (try_modules(t, ret, e) < 0)
        return -1;
    return start_both(t, *ret, e);
}
