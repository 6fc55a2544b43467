/* See key_options.h. */

#include "cli/key_options.h"

#include "base/flags.h"
#include "base/log.h"
#include "base/num.h"
#include "cli/report.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

enum {
    OPT_TENANT = 256,
    OPT_RATE,
    OPT_CONCURRENT,
    OPT_CPU,
    OPT_SANDBOXES,
    OPT_NETWORK,
    OPT_RIGHT,
    OPT_KEYS,
    OPT_STATE,
    OPT_CONFIG,
    OPT_JSON
};

static const struct option longs[] = {
    {"tenant", required_argument, NULL, OPT_TENANT},
    {"requests-per-second", required_argument, NULL, OPT_RATE},
    {"concurrent", required_argument, NULL, OPT_CONCURRENT},
    {"cpu-seconds-per-minute", required_argument, NULL, OPT_CPU},
    {"sandboxes", required_argument, NULL, OPT_SANDBOXES},
    {"network", required_argument, NULL, OPT_NETWORK},
    {"right", required_argument, NULL, OPT_RIGHT},
    {"keys", required_argument, NULL, OPT_KEYS},
    {"state-dir", required_argument, NULL, OPT_STATE},
    {"config", required_argument, NULL, OPT_CONFIG},
    {"json", no_argument, NULL, OPT_JSON},
    {"help", no_argument, NULL, 'h'},
    {0},
};

int key_options_help(void) {
    puts(
        "cloche key add NAME [OPTIONS]     make a key and print its secret, once\n"
        "cloche key list                   print the keys, without their secrets\n"
        "cloche key revoke ID_OR_NAME      remove a key\n"
        "\n"
        "  --tenant NAME                   whom it works for; otherwise the key's own name\n"
        "  --requests-per-second X         fractions allowed; without a limit there is none\n"
        "  --concurrent N                  requests at the same time\n"
        "  --cpu-seconds-per-minute N      processor time of its programs\n"
        "  --sandboxes N                   live sandboxes of its tenant\n"
        "  --network RULES                 the most that its sandboxes may reach, within what the\n"
        "                                  server grants: none, open, or names, addresses and\n"
        "                                  @sets, with commas; otherwise all of that\n"
        "  --right RIGHT                   what it may do besides, again for more; profiles: make\n"
        "                                  and remove profiles for its tenant\n"
        "  --keys FILE                     the file of keys; otherwise keys.json in\n"
        "  --state-dir DIR                 the state directory, /var/lib/cloche (root) or\n"
        "                                  ~/.local/state/cloche unless set otherwise: both are\n"
        "                                  settings of `cloche serve`, see `cloche config`\n"
        "  --config FILE                   the configuration file\n"
        "  --json                          print JSON\n"
        "\n"
        "A running server takes changes up when `cloche serve` gets SIGHUP.");
    return 0;
}

static int take_word(struct key_options *o, const char *word, struct err *e) {
    char quoted[80];
    if (!o->action)
        o->action = word;
    else if (!o->operand)
        o->operand = word;
    else
        return err_user(e, "bad_option", "key: %s is one word too many",
                        log_quote(word, quoted, sizeof quoted));
    return 0;
}

static int read_rate(const char *text, double *ret, struct err *e) {
    const struct num_rule rule = {"--requests-per-second", (uint64_t)(KEYS_RATE_MIN * 1000),
                                  KEYS_LIMIT_MAX * 1000ull};
    uint64_t milli = 0;
    if (num_milli(text, &rule, &milli, e) < 0)
        return -1;
    *ret = (double)milli / 1000;
    return 0;
}

static int handle(struct key_options *o, int code, struct err *e) {
    const struct num_rule concurrent = {"--concurrent", 1, KEYS_LIMIT_MAX},
                          cpu = {"--cpu-seconds-per-minute", 1, KEYS_LIMIT_MAX},
                          sandboxes = {"--sandboxes", 1, KEYS_LIMIT_MAX};
    for (size_t i = 0; code >= OPT_TENANT && code <= OPT_RIGHT && longs[i].name; i++)
        if (longs[i].val == code)
            o->only_add = longs[i].name;
    switch (code) {
    case 1: /* not an option */
        return take_word(o, optarg, e);
    case OPT_TENANT:
        o->tenant = optarg;
        return 0;
    case OPT_RATE:
        return read_rate(optarg, &o->limits.requests_per_second, e);
    case OPT_CONCURRENT:
        return num_u32(optarg, &concurrent, &o->limits.concurrent, e);
    case OPT_CPU:
        return num_u32(optarg, &cpu, &o->limits.cpu_seconds_per_minute, e);
    case OPT_SANDBOXES:
        return num_u32(optarg, &sandboxes, &o->limits.sandboxes, e);
    case OPT_NETWORK:
        o->network = optarg;
        return 0;
    case OPT_RIGHT:
        return key_read_right("bad_value", optarg, &o->rights, e);
    case OPT_KEYS:
        o->file = optarg;
        return 0;
    case OPT_STATE:
        o->state_dir = optarg;
        return 0;
    case OPT_CONFIG:
        o->config = optarg;
        return 0;
    case OPT_JSON:
        o->json = true;
        return 0;
    case 'h':
        o->help = true;
        return 0;
    default:
        return err_set(e, 0, "key: option code %d", code);
    }
}

int key_options_parse(int argc, char **argv, struct key_options *ret, struct err *e) {
    *ret = (struct key_options){.json = report_wants_json(argc, argv)};
    optind = 0;
    opterr = 0;
    int code;
    while ((code = getopt_long(argc, argv, "-:h", longs, NULL)) != -1) {
        if (code == '?' || code == ':')
            return flags_bad("key", code, argv, longs, e);
        if (handle(ret, code, e) < 0)
            return -1;
    }
    for (; optind < argc; optind++)
        if (take_word(ret, argv[optind], e) < 0)
            return -1;
    return 0;
}
