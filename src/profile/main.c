/* cloche-profile: `cloche profile`, started by cloche with the same arguments. */

#include "base/buf.h"
#include "base/nearest.h"
#include "cli/report.h"
#include "config/options.h"
#include "profile/commands.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const struct verb {
    const char *name;
    int (*fn)(const struct profile_options *o, struct err *e);
    bool takes_name, takes_packages;
} verbs[] = {
    {"add", command_add, true, true},    {"list", command_list, false, false},
    {"show", command_show, true, false}, {"test", command_test, true, false},
    {"sync", command_sync, true, false}, {"remove", command_remove, true, false},
};
#define VERBS (sizeof verbs / sizeof verbs[0])

static int find_verb(const struct profile_options *o, const struct verb **ret, struct err *e) {
    struct nearest near = {.word = o->verb ? o->verb : ""};
    AUTO_BUF all = BUF_INIT;
    for (size_t i = 0; i < VERBS; i++) {
        nearest_offer(&near, verbs[i].name);
        buf_addf(&all, "%s%s", i ? ", " : "", verbs[i].name);
        if (o->verb && strcmp(o->verb, verbs[i].name) == 0)
            *ret = &verbs[i];
    }
    if (!*ret)
        return report_bad_verb("profile: ", &near, all.data, e);
    if ((*ret)->takes_name && !o->name)
        return err_user(e, "bad_option", "profile %s: which one? It takes a NAME", o->verb);
    if ((!(*ret)->takes_packages && o->npackages) || (!(*ret)->takes_name && o->name))
        return err_user(e, "bad_option", "profile %s: there are too many words", o->verb);
    return 0;
}

int main(int argc, char **argv) {
    struct profile_options o;
    const struct verb *v = NULL;
    struct err e;
    int status = 0;
    signal(SIGPIPE, SIG_IGN);
    umask(022);
    int rc = profile_options_parse(argc, argv, &o, &e);
    if (rc == 0 && o.help)
        profile_options_help();
    else if (rc < 0 || find_verb(&o, &v, &e) < 0 || options_load(o.options, &e) < 0 ||
             v->fn(&o, &e) < 0)
        status = report(&e, o.json);
    profile_options_done(&o);
    return status;
}
