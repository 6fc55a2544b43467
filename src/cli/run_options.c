/* See run_options.h. */

#include "cli/run_options.h"

#include "base/buf.h"
#include "base/flags.h"
#include "base/log.h"
#include "cli/limit_flags.h"
#include "cli/remote.h"
#include "cli/report.h"
#include "config/options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* getopt's codes; the limits follow LIMIT_BASE. */
enum {
    OPT_PROFILE = 256,
    OPT_FILE,
    OPT_OUT,
    OPT_ENV,
    OPT_STDIN,
    OPT_LAST_LINE,
    OPT_JSON,
    OPT_SOCKET,
    OPT_CONFIG,
    OPT_SERVER,
    OPT_KEY_FILE,
    OPT_NETWORK,
    LIMIT_BASE
};

static const struct option fixed_options[] = {
    {"profile", required_argument, NULL, OPT_PROFILE},
    {"file", required_argument, NULL, OPT_FILE},
    {"out", required_argument, NULL, OPT_OUT},
    {"env", required_argument, NULL, OPT_ENV},
    {"stdin", no_argument, NULL, OPT_STDIN},
    {"interactive-last-line", no_argument, NULL, OPT_LAST_LINE},
    {"json", no_argument, NULL, OPT_JSON},
    {"socket", required_argument, NULL, OPT_SOCKET},
    {"config", required_argument, NULL, OPT_CONFIG},
    {"server", required_argument, NULL, OPT_SERVER},
    {"key-file", required_argument, NULL, OPT_KEY_FILE},
    {"network", required_argument, NULL, OPT_NETWORK},
    {"verbose", no_argument, NULL, 'v'},
    {"help", no_argument, NULL, 'h'},
};
#define FIXED (sizeof fixed_options / sizeof fixed_options[0])

void run_options_help(void) {
    puts(
        "cloche run [OPTIONS] FILE | -c CODE | -   [-- ARGUMENTS]\n"
        "\n"
        "Runs a Python program in a fresh sandbox, from the engine of `cloche serve` or, where "
        "none\n"
        "is running, from a private one. The exit status is the program's; 124 timeout, 137 "
        "memory,\n"
        "128+N signal N, 125 a failure of cloche itself.\n"
        "\n"
        "  -c CODE                   the program itself; - reads it from stdin\n"
        "  --profile NAME            auto (by its imports), base, data, or one of your own\n"
        "  --file HOST[:SANDBOX]     copy a file into /workspace; may be repeated\n"
        "  --out DIR                 put the files that it made or changed there\n"
        "  --env NAME=VALUE          set a variable; may be repeated\n"
        "  --network RULES           what it may reach: none, open, or names, addresses and @sets\n"
        "                            with commas: pypi.org:443,*.example.org,10.1.0.0/16,@npm\n"
        "  --stdin                   let it read our stdin (otherwise it reads nothing)\n"
        "  --interactive-last-line   print the value of a last expression\n"
        "  --json                    print the whole result as one line of JSON, nothing else\n"
        "");
    limit_flags_help(LIMIT_OF_ANY, 28);
    puts("\n"
         "  --socket PATH             the engine to use; it must be there\n"
         "  --config FILE             the configuration of a private engine\n"
         "  --server URL              a server instead: http://HOST:PORT, https://…, unix:PATH;\n"
         "                            or in CLOCHE_SERVER\n"
         "  --key-file FILE           the API key for it; or in CLOCHE_API_KEY\n"
         "  -v                        say what happens");
}

static int add_env(struct run_msg *m, const char *text, struct err *e) {
    const char *equals = strchr(text, '=');
    if (!equals || equals == text) {
        char quoted[64];
        return err_user(e, "bad_value", "--env is %s; it must be NAME=VALUE",
                        log_quote(text, quoted, sizeof quoted));
    }
    if (m->nenv == RUN_MAX_ENV)
        return err_user(e, "bad_value", "--env: at most %d variables are allowed", RUN_MAX_ENV);
    m->env[m->nenv++] = text;
    return 0;
}

static int add_input(struct run_options *r, const char *spec, struct err *e) {
    if (r->ninputs == RUN_MAX_FILES)
        return err_user(e, "bad_value", "--file: at most %d files are allowed", RUN_MAX_FILES);
    r->inputs = xrealloc(r->inputs, (r->ninputs + 1) * sizeof *r->inputs);
    r->inputs[r->ninputs++] = spec;
    return 0;
}

static int set_profile(struct run_options *r, const char *name, struct err *e) {
    if (strlen(name) == 0 || strlen(name) > 32) {
        char quoted[64];
        return err_user(e, "unknown_profile", "there is no profile %s",
                        log_quote(name, quoted, sizeof quoted));
    }
    r->msg.profile = name;
    return 0;
}

static int set_program(struct run_options *r, const char **slot, const char *text, struct err *e) {
    if (r->code || r->file) {
        char quoted[64];
        return err_user(e, "bad_option",
                        "run: %s is one program too many (its arguments go after --)",
                        log_quote(text, quoted, sizeof quoted));
    }
    *slot = text;
    return 0;
}

static int handle(struct run_options *r, struct options *o, int code, struct err *e) {
    if (code >= LIMIT_BASE)
        return limit_flags_read((size_t)(code - LIMIT_BASE), optarg, &r->msg.limits, e);
    switch (code) {
    case 1: /* not an option */
        return set_program(r, &r->file, optarg, e);
    case 'c':
        return set_program(r, &r->code, optarg, e);
    case 'v':
        r->verbose = true;
        return 0;
    case 'h':
        r->help = true;
        return 0;
    case OPT_PROFILE:
        return set_profile(r, optarg, e);
    case OPT_FILE:
        return add_input(r, optarg, e);
    case OPT_OUT:
        r->out = optarg;
        return 0;
    case OPT_ENV:
        return add_env(&r->msg, optarg, e);
    case OPT_STDIN:
        r->msg.flags |= RUN_STDIN;
        return 0;
    case OPT_LAST_LINE:
        r->msg.flags |= RUN_LAST_LINE;
        return 0;
    case OPT_JSON:
        r->json = true;
        return 0;
    case OPT_SOCKET:
        r->socket_named = true;
        return options_set_flag(o, "socket", optarg, e);
    case OPT_CONFIG:
        r->config_named = true;
        return options_set_flag(o, "config", optarg, e);
    case OPT_SERVER:
        r->server = optarg;
        return 0;
    case OPT_KEY_FILE:
        r->key_file = optarg;
        return 0;
    case OPT_NETWORK:
        r->network = optarg;
        return 0;
    default:
        return err_set(e, 0, "run: option code %d", code);
    }
}

/* What is left over is for the program. */
static int take_arguments(struct run_options *r, int argc, char **argv, struct err *e) {
    if (argc - optind > RUN_MAX_ARGS)
        return err_user(e, "bad_value", "run: at most %d arguments are allowed", RUN_MAX_ARGS);
    for (; optind < argc; optind++)
        r->msg.args[r->msg.nargs++] = argv[optind];
    return 0;
}

static int check_together(const struct run_options *r, struct err *e) {
    if (r->help)
        return 0;
    if (!r->code && !r->file)
        return err_user(e, "bad_option", "run: no program: name a FILE, -c CODE or -");
    if (r->file && strcmp(r->file, "-") == 0 && r->msg.flags & RUN_STDIN)
        return err_user(e, "bad_option", "run: stdin cannot be both the program and its input");
    if (r->server && (r->socket_named || r->config_named))
        return err_user(e, "bad_option",
                        "run: --server names a server elsewhere; %s is for an "
                        "engine here",
                        r->socket_named ? "--socket" : "--config");
    if (r->key_file && !r->server)
        return err_user(e, "bad_option", "run: --key-file is for --server URL or CLOCHE_SERVER");
    return 0;
}

int run_options_parse(int argc, char **argv, struct options *o, struct run_options *ret,
                      struct err *e) {
    *ret = (struct run_options){.json = report_wants_json(argc, argv),
                                .msg = {.profile = "auto", .code_fd = -1}};
    struct option longs[FIXED + LIMITS_ + 1] = {0};
    memcpy(longs, fixed_options, sizeof fixed_options);
    limit_flags_options(longs + FIXED, LIMIT_BASE);
    optind = 0;
    opterr = 0;
    int code;
    while ((code = getopt_long(argc, argv, "-:c:vh", longs, NULL)) != -1) {
        if (code == '?' || code == ':')
            return flags_bad("run", code, argv, longs, e);
        if (handle(ret, o, code, e) < 0)
            return -1;
    }
    if (take_arguments(ret, argc, argv, e) < 0)
        return -1;
    /* Whoever names an engine on the command line means that one. */
    if (!ret->socket_named && !ret->config_named)
        ret->server = remote_named(ret->server);
    return check_together(ret, e);
}

void run_options_done(struct run_options *r) {
    free(r->inputs);
    *r = (struct run_options){0};
}
