/* See options.h. */

#include "profile/options.h"

#include "base/buf.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/num.h"
#include "cli/limit_flags.h"
#include "cli/report.h"
#include "config/config.h"
#include "config/options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUILD_TIMEOUT_S 900
#define BUILD_MEMORY_MB 2048
#define BUILD_DISK_MB   4096

/* getopt's codes; the limits follow LIMIT_BASE. */
enum {
    OPT_PYTHON = 256,
    OPT_PYPROJECT,
    OPT_PRELOAD,
    OPT_ENV,
    OPT_FROM,
    OPT_FIND_LINKS,
    OPT_ALLOW_BUILDS,
    OPT_SYSTEM_PACKAGES,
    OPT_APT,
    OPT_BUILD_TIMEOUT,
    OPT_BUILD_MEMORY,
    OPT_BUILD_DISK,
    OPT_FORCE,
    OPT_JSON,
    OPT_CONFIG,
    OPT_SOCKET,
    OPT_PLACE,
    LIMIT_BASE
};

static const struct option fixed_options[] = {
    {"python", required_argument, NULL, OPT_PYTHON},
    {"requirements", required_argument, NULL, 'r'},
    {"pyproject", required_argument, NULL, OPT_PYPROJECT},
    {"preload", required_argument, NULL, OPT_PRELOAD},
    {"env", required_argument, NULL, OPT_ENV},
    {"from", required_argument, NULL, OPT_FROM},
    {"find-links", required_argument, NULL, OPT_FIND_LINKS},
    {"allow-builds", no_argument, NULL, OPT_ALLOW_BUILDS},
    {"system-packages", no_argument, NULL, OPT_SYSTEM_PACKAGES},
    {"apt", required_argument, NULL, OPT_APT},
    {"build-timeout", required_argument, NULL, OPT_BUILD_TIMEOUT},
    {"build-memory", required_argument, NULL, OPT_BUILD_MEMORY},
    {"build-disk", required_argument, NULL, OPT_BUILD_DISK},
    {"force", no_argument, NULL, OPT_FORCE},
    {"json", no_argument, NULL, OPT_JSON},
    {"config", required_argument, NULL, OPT_CONFIG},
    {"socket", required_argument, NULL, OPT_SOCKET},
    {"profiles-dir", required_argument, NULL, OPT_PLACE},
    {"help", no_argument, NULL, 'h'},
};
#define FIXED (sizeof fixed_options / sizeof fixed_options[0])

void profile_options_help(void) {
    puts("cloche profile add NAME [OPTIONS] [PACKAGE…]   build a profile\n"
         "cloche profile list [--json]                   those that were built\n"
         "cloche profile show NAME [--json]              what is in one\n"
         "cloche profile test NAME [--json]              what one costs, of the configuration too\n"
         "cloche profile sync NAME                       build it again, from its lock\n"
         "cloche profile remove NAME [--force]           remove it; --force: what runs goes on\n"
         "\n"
         "The packages are installed in a sandbox, from PyPI or a directory of wheels, and the\n"
         "result is tried; then a server that runs takes it up.\n"
         "\n"
         "  PACKAGE                   as on pip's command line: polars, 'rich>=13', a URL\n"
         "  -r FILE                   requirements, without options of pip\n"
         "  --pyproject FILE          the dependencies of a project\n"
         "  --python PATH|VERSION     its Python; /usr/bin/python3 unless given\n"
         "  --preload MODULE,…        imported ahead of time; trusted: it runs before any sandbox\n"
         "  --env NAME=VALUE          a variable of all its programs; may be repeated\n"
         "  --from PROFILE            begin with what that one was built of\n"
         "  --find-links DIR          a directory of wheels; then nothing is asked of a network\n"
         "  --allow-builds            packages without a wheel are built, in the sandbox\n"
         "  --system-packages         it sees the packages of its Python, too\n"
         "  --apt PACKAGE             a Debian package, which apt-get installs on this machine\n"
         "                            before; as root only; may be repeated; the profile sees the\n"
         "                            packages of its Python, too\n"
         "  --build-timeout SECONDS   how long the build may take: 900\n"
         "  --build-memory MB         its memory: 2048\n"
         "  --build-disk MB           its disk: 4096\n");
    limit_flags_help(LIMIT_OF_ANY, 28);
    puts("                            (each: of programs that ask for nothing)\n"
         "\n"
         "  --profiles-dir DIR        where profiles are; a setting, as --config FILE and\n"
         "  --socket PATH             of the server that is to know; see `cloche config`\n"
         "  --json                    print JSON");
}

static int take_word(struct profile_options *o, const char *word, struct err *e) {
    if (!o->verb) {
        o->verb = word;
    } else if (!o->name) {
        o->name = word;
    } else if (o->npackages < PROFILE_MAX_WORDS) {
        o->packages = xrealloc(o->packages, (o->npackages + 1) * sizeof *o->packages);
        o->packages[o->npackages++] = word;
    } else {
        return err_user(e, "bad_value", "profile: at most %d packages are allowed here",
                        PROFILE_MAX_WORDS);
    }
    return 0;
}

static int add_env(struct profile_options *o, const char *text, struct err *e) {
    const char *equals = strchr(text, '=');
    char quoted[64];
    if (!equals || equals == text)
        return err_user(e, "bad_value", "--env is %s; it must be NAME=VALUE",
                        log_quote(text, quoted, sizeof quoted));
    if (o->nenv == CONFIG_MAX_LIST)
        return err_user(e, "bad_value", "--env: at most %d variables are allowed", CONFIG_MAX_LIST);
    o->env = xrealloc(o->env, (o->nenv + 1) * sizeof *o->env);
    o->env[o->nenv++] = text;
    return 0;
}

static int add_apt(struct profile_options *o, const char *name, struct err *e) {
    if (o->napt == PROFILE_MAX_WORDS)
        return err_user(e, "bad_value", "--apt: at most %d packages are allowed",
                        PROFILE_MAX_WORDS);
    o->apt = xrealloc(o->apt, (o->napt + 1) * sizeof *o->apt);
    o->apt[o->napt++] = name;
    o->system_packages = true;
    return 0;
}

static const char **find_text(struct profile_options *o, int code) {
    switch (code) {
    case OPT_PYTHON:
        return &o->python;
    case 'r':
        return &o->requirements;
    case OPT_PYPROJECT:
        return &o->pyproject;
    case OPT_PRELOAD:
        return &o->preload;
    case OPT_FROM:
        return &o->from;
    case OPT_FIND_LINKS:
        return &o->find_links;
    default:
        return NULL;
    }
}

static bool *find_switch(struct profile_options *o, int code) {
    switch (code) {
    case OPT_ALLOW_BUILDS:
        return &o->allow_builds;
    case OPT_SYSTEM_PACKAGES:
        return &o->system_packages;
    case OPT_FORCE:
        return &o->force;
    case OPT_JSON:
        return &o->json;
    case 'h':
        return &o->help;
    default:
        return NULL;
    }
}

static int handle(struct profile_options *o, int code, struct err *e) {
    const struct num_rule timeout = {"--build-timeout", 1, 86400},
                          memory = {"--build-memory", 64, 1u << 20},
                          disk = {"--build-disk", 16, 1u << 20};
    const char **text = find_text(o, code);
    bool *is_set = find_switch(o, code);
    if (text)
        *text = optarg;
    if (is_set)
        *is_set = true;
    if (text || is_set)
        return 0;
    if (code >= LIMIT_BASE)
        return limit_flags_read((size_t)(code - LIMIT_BASE), optarg, &o->limits, e);
    switch (code) {
    case 1: /* not an option */
        return take_word(o, optarg, e);
    case OPT_ENV:
        return add_env(o, optarg, e);
    case OPT_APT:
        return add_apt(o, optarg, e);
    case OPT_BUILD_TIMEOUT:
        return num_u32(optarg, &timeout, &o->build_timeout_s, e);
    case OPT_BUILD_MEMORY:
        return num_u32(optarg, &memory, &o->build_memory_mb, e);
    case OPT_BUILD_DISK:
        return num_u32(optarg, &disk, &o->build_disk_mb, e);
    case OPT_CONFIG:
        return options_set_flag(o->options, "config", optarg, e);
    case OPT_SOCKET:
        return options_set_flag(o->options, "socket", optarg, e);
    case OPT_PLACE:
        return options_set_flag(o->options, "profiles_dir", optarg, e);
    default:
        return err_set(e, 0, "profile: option code %d", code);
    }
}

int profile_options_parse(int argc, char **argv, struct profile_options *ret, struct err *e) {
    *ret = (struct profile_options){.options = options_new(),
                                    .json = report_wants_json(argc, argv),
                                    .build_timeout_s = BUILD_TIMEOUT_S,
                                    .build_memory_mb = BUILD_MEMORY_MB,
                                    .build_disk_mb = BUILD_DISK_MB};
    struct option longs[FIXED + LIMITS_ + 1] = {0};
    memcpy(longs, fixed_options, sizeof fixed_options);
    limit_flags_options(longs + FIXED, LIMIT_BASE);
    optind = 0;
    opterr = 0;
    int code;
    while ((code = getopt_long(argc, argv, "-:r:h", longs, NULL)) != -1) {
        if (code == '?' || code == ':')
            return flags_bad("profile", code, argv, longs, e);
        if (handle(ret, code, e) < 0)
            return -1;
    }
    for (; optind < argc; optind++)
        if (take_word(ret, argv[optind], e) < 0)
            return -1;
    return 0;
}

void profile_options_done(struct profile_options *o) {
    free(o->packages);
    free(o->env);
    free(o->apt);
    options_free(o->options);
}
