/* `cloche doctor`: what isolation this machine gives, what is missing, what that costs and how to
 * get it; whether the configured minimum is met and the profiles work (exit status 0 or 1); the
 * machine and the profiles, which are tried (trial.h).
 *
 * Everything is gathered first (doctor_look.c) and then printed (doctor_print.c). Only a bad
 * command line or configuration is a reason to stop. */

#include "cli/doctor.h"

#include "base/fd.h"
#include "cli/doctor_look.h"
#include "cli/doctor_print.h"
#include "cli/report.h"
#include "config/options.h"
#include "config/paths.h"
#include "config/resolve.h"
#include "sandbox/probe.h"

#include <stdio.h>

/* "ids, cgroup and landlock": the layers that the word strict does not stand for. */
static void print_beyond_strict(void) {
    uint32_t strict = 0, left = (UINT32_C(1) << PROBE_LAYERS_) - 1;
    struct err e;
    probe_minimum("strict", &strict, &e);
    left &= ~strict;
    for (enum probe_layer l = 0; left; l++) {
        if (!(left & UINT32_C(1) << l))
            continue;
        left &= ~(UINT32_C(1) << l);
        printf("%s%s", probe_layer_name(l), !left ? "" : (left & (left - 1)) ? ", " : " and ");
    }
}

static int print_help(void) {
    fputs(
        "cloche doctor [--json] [--minimum LIST] [--config FILE] [SETTINGS]\n\n"
        "Checks every layer of isolation on this machine: what is in force, what is missing,\n"
        "what that costs and what to do about it. Then tries every profile: starts its Python in\n"
        "its walls and imports its modules, for programs and for live kernels. Exit status 0: the\n"
        "minimum is met and all profiles work, 1: not so, 125: a mistake in the command line or\n"
        "the configuration.\n\n"
        "LIST is strict (all but ",
        stdout);
    print_beyond_strict();
    puts("), none, or names of layers with commas\nbetween; strict,cgroup adds one.");
    return 0;
}

int verb_doctor(int argc, char **argv) {
    bool json = false, help = false;
    const struct verb_flag flags[] = {{"json", &json}, {"help", &help}, {0}};
    AUTO_OPTIONS o = options_new();
    struct err e;
    if (options_parse(o, argc, argv, flags, &e) < 0)
        return report(&e, json);
    if (help)
        return print_help();
    /* Where our programs are is found through /proc, which may be missing: then none is started. */
    AUTO_FREE char *libexec = NULL;
    if (paths_libexec(&libexec, &e) < 0 && options_set_flag(o, "libexec", "/", &e) < 0)
        return report(&e, json);
    struct config c;
    if (options_load(o, &e) < 0 || options_resolve(o, &c, &e) < 0)
        return report(&e, json);

    struct doctor_findings f = {.minimum = c.minimum, .nprofiles = config_named(&c, c.nprofiles)};
    if (probe_minimum(c.minimum, &f.need, &e) < 0) {
        config_done(&c);
        return report(&e, json);
    }
    doctor_look(&c, &f);
    if (json)
        doctor_print_json(&f);
    else
        doctor_print_text(&f);
    bool good = !f.unmet && !doctor_has_broken(&f);
    doctor_findings_done(&f);
    config_done(&c);
    return good ? 0 : 1;
}
