/* `cloche key add|list|revoke`: the API keys of the HTTP service, in one file (keys/keys.h).
 *
 * The server is not asked: it may run or not, and reads the file when it starts and on SIGHUP. What
 * changes the file does so under its lock, from the reading to the writing. */

#include "base/buf.h"
#include "base/fd.h"
#include "base/flags.h"
#include "base/json.h"
#include "base/log.h"
#include "base/num.h"
#include "base/text.h"
#include "cli/report.h"
#include "cli/verbs.h"
#include "config/options.h"
#include "config/paths.h"
#include "keys/keys.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define IDS_SHOWN 8 /* of keys that share a name; more do not fit into an error */

struct key_options {
    const char *action, *operand, *tenant; /* borrowed: argv's */
    const char *file, *state_dir, *config; /* likewise */
    const char *only_add;                  /* a flag that was given and is for add only */
    struct key_limits limits;
    bool json, help;
};

/* Where the file is. */
struct place {
    char *dir, *name; /* owned */
    int fd;           /* owned: the directory; -1 when there is none */
};
#define AUTO_PLACE __attribute__((cleanup(place_done))) struct place

static void place_done(struct place *p) {
    free(p->dir);
    free(p->name);
    fd_close(&p->fd);
}

/* ------------------------------------------------------------------ the command line */

enum {
    OPT_TENANT = 256,
    OPT_RATE,
    OPT_CONCURRENT,
    OPT_CPU,
    OPT_SANDBOXES,
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
    {"keys", required_argument, NULL, OPT_KEYS},
    {"state-dir", required_argument, NULL, OPT_STATE},
    {"config", required_argument, NULL, OPT_CONFIG},
    {"json", no_argument, NULL, OPT_JSON},
    {"help", no_argument, NULL, 'h'},
    {0},
};

static int print_help(void) {
    puts("cloche key add NAME [OPTIONS]     make a key and print its secret, once\n"
         "cloche key list                   print the keys, without their secrets\n"
         "cloche key revoke ID_OR_NAME      remove a key\n"
         "\n"
         "  --tenant NAME                   whom it works for; otherwise the key's own name\n"
         "  --requests-per-second X         fractions allowed; without a limit there is none\n"
         "  --concurrent N                  requests at the same time\n"
         "  --cpu-seconds-per-minute N      processor time of its programs\n"
         "  --sandboxes N                   live sandboxes of its tenant\n"
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
    for (size_t i = 0; code >= OPT_TENANT && code <= OPT_SANDBOXES && longs[i].name; i++)
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

/* Errors in earlier options must come out as JSON too. */
static bool asks_for_json(int argc, char **argv) {
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--json") == 0)
            return true;
    return false;
}

static int parse(int argc, char **argv, struct key_options *ret, struct err *e) {
    *ret = (struct key_options){.json = asks_for_json(argc, argv)};
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

/* ------------------------------------------------------------------ the file */

static int load_settings(const struct key_options *o, struct options *to, struct err *e) {
    const struct {
        const char *name, *text;
    } flags[] = {{"keys", o->file}, {"state_dir", o->state_dir}, {"config", o->config}};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (flags[i].text && options_set_flag(to, flags[i].name, flags[i].text, e) < 0)
            return -1;
    return options_load(to, e);
}

/* Where the server looks for it: the settings `keys` and `state_dir`. */
static int find_file(const struct key_options *o, char **ret, bool *ret_named, struct err *e) {
    AUTO_OPTIONS s = options_new();
    if (load_settings(o, s, e) < 0)
        return -1;
    const char *named = options_text(s, "keys");
    *ret_named = *named || o->file;
    if (*ret_named) {
        if (!*named || named[strlen(named) - 1] == '/') {
            char quoted[80];
            return err_user(e, "bad_value", "--keys is %s; it must be the path of a file",
                            log_quote(named, quoted, sizeof quoted));
        }
        return paths_absolute(named, ret, e);
    }
    AUTO_FREE char *usual = paths_state_dir();
    if (!usual && options_origin(s, "state_dir") == ORIGIN_DEFAULT)
        return err_user(e, "bad_value",
                        "neither XDG_STATE_HOME nor HOME is an absolute path; name a file with "
                        "--keys");
    AUTO_FREE char *dir = NULL;
    if (paths_absolute(options_text(s, "state_dir"), &dir, e) < 0)
        return -1;
    struct buf b = BUF_INIT;
    buf_addf(&b, "%s/keys.json", dir);
    *ret = buf_take(&b);
    return 0;
}

/* The directory may be missing, unless `make`: then our own is made, and one that was named must be
 * there. */
static int place_open(const struct key_options *o, bool make, struct place *ret, struct err *e) {
    AUTO_FREE char *path = NULL;
    bool named;
    if (find_file(o, &path, &named, e) < 0)
        return -1;
    AUTO_PLACE p = {.fd = -1};
    char *slash = strrchr(path, '/');
    p.name = xstrdup(slash + 1);
    *slash = '\0';
    p.dir = xstrdup(slash == path ? "/" : path);
    if (make && !named && paths_make_state_dir(p.dir, &p.fd, e) < 0)
        return -1;
    if (p.fd < 0)
        p.fd = open(p.dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (p.fd < 0 && (make || errno != ENOENT))
        return err_user(e, errno == ENOENT ? "no_such_file" : "not_readable", "%s: %s", p.dir,
                        strerror(errno));
    *ret = p;
    p = (struct place){.fd = -1};
    return 0;
}

static int load(const struct place *p, struct keys *ret, bool *ret_there, struct err *e) {
    *ret_there = false;
    if (p->fd < 0)
        return 0;
    return keys_read(p->fd, p->name, ret, ret_there, e) < 0 ? err_wrap(e, "in %s", p->dir) : 0;
}

/* What was read under *ret_lock may be changed and given to save. */
static int load_to_change(const struct place *p, struct keys *ret, int *ret_lock, struct err *e) {
    bool there;
    if (p->fd < 0)
        return 0;
    if (keys_lock(p->fd, p->name, ret_lock, e) < 0)
        return err_wrap(e, "in %s", p->dir);
    return load(p, ret, &there, e);
}

static int save(const struct place *p, const struct keys *k, struct err *e) {
    return keys_write(p->fd, p->name, k, e) < 0 ? err_wrap(e, "in %s", p->dir) : 0;
}

/* ------------------------------------------------------------------ what is printed */

static void write_limit(struct jw *j, const char *name, uint32_t v) {
    jw_key(j, name);
    if (v)
        jw_uint(j, v);
    else
        jw_null(j);
}

/* The members of a key but its hash, which is nobody's business. */
static void write_key(struct jw *j, const struct key *k) {
    jw_key_str(j, "id", k->id);
    jw_key_str(j, "name", k->name);
    jw_key_str(j, "tenant", k->tenant);
    jw_key_real(j, "created", k->created);
    jw_key(j, "limits");
    jw_object(j);
    if (k->limits.requests_per_second != 0)
        jw_key_real(j, "requests_per_second", k->limits.requests_per_second);
    else
        jw_key_null(j, "requests_per_second");
    write_limit(j, "concurrent", k->limits.concurrent);
    write_limit(j, "cpu_seconds_per_minute", k->limits.cpu_seconds_per_minute);
    write_limit(j, "sandboxes", k->limits.sandboxes);
    jw_object_end(j);
}

static void add_limits(struct buf *b, const struct key_limits *l) {
    size_t before = b->len;
    if (l->requests_per_second != 0)
        buf_addf(b, "%.10g requests/s", l->requests_per_second);
    if (l->concurrent)
        buf_addf(b, "%s%u at once", b->len > before ? ", " : "", l->concurrent);
    if (l->cpu_seconds_per_minute)
        buf_addf(b, "%s%u CPU s/min", b->len > before ? ", " : "", l->cpu_seconds_per_minute);
    if (l->sandboxes)
        buf_addf(b, "%s%u sandboxes", b->len > before ? ", " : "", l->sandboxes);
    if (b->len == before)
        buf_adds(b, "none");
}

static int widest(int a, const char *text) {
    int len = (int)strlen(text);
    return len > a ? len : a;
}

static void print_table(const struct keys *k) {
    int name = (int)strlen("name"), tenant = (int)strlen("tenant");
    for (unsigned i = 0; i < k->n; i++) {
        name = widest(name, k->items[i].name);
        tenant = widest(tenant, k->items[i].tenant);
    }
    printf("%-20s  %-*s  %-*s  %-20s  %s\n", "id", name, "name", tenant, "tenant", "created",
           "limits");
    for (unsigned i = 0; i < k->n; i++) {
        const struct key *key = &k->items[i];
        char when[32] = "?";
        struct tm tm;
        if (text_date((double)key->created, &tm))
            strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &tm);
        AUTO_BUF limits = BUF_INIT;
        add_limits(&limits, &key->limits);
        printf("%-20s  %-*s  %-*s  %-20s  %s\n", key->id, name, key->name, tenant, key->tenant,
               when, limits.data);
    }
}

static void print_list_json(const struct keys *k) {
    AUTO_BUF b = BUF_INIT;
    struct jw j = JW_INIT(&b);
    jw_object(&j);
    jw_key(&j, "keys");
    jw_array(&j);
    for (unsigned i = 0; i < k->n; i++) {
        jw_object(&j);
        write_key(&j, &k->items[i]);
        jw_object_end(&j);
    }
    jw_array_end(&j);
    jw_object_end(&j);
    puts(b.data);
}

/* One object with the key's members; the secret comes last, if there is one. */
static void add_key_json(struct buf *b, const struct key *k, const char *secret) {
    struct jw j = JW_INIT(b);
    jw_object(&j);
    write_key(&j, k);
    if (secret)
        jw_key_str(&j, "secret", secret);
    jw_object_end(&j);
    buf_addc(b, '\n');
}

/* ------------------------------------------------------------------ the actions */

/* Written without stdio: whether it arrived must be known here, since it is kept nowhere. */
static int print_secret(const struct key_options *o, const struct key *k, const char *secret,
                        struct err *e) {
    AUTO_BUF b = BUF_INIT;
    if (o->json)
        add_key_json(&b, k, secret);
    else
        buf_addf(&b, "%s\n", secret);
    int rc = fd_write_all(STDOUT_FILENO, b.data, b.len, e);
    explicit_bzero(b.data, b.len);
    if (rc == 0)
        return 0;
    return err_user(e, "output_failed",
                    "%s was made but its secret could not be printed (%s): revoke it", k->id,
                    strerror(e->code));
}

static int act_add(const struct key_options *o, struct err *e) {
    AUTO_PLACE p = {.fd = -1};
    AUTO_KEYS keys = {0};
    AUTO_KEY made = {0};
    AUTO_FD lock = -1;
    char secret[KEYS_SECRET_SIZE];
    if (key_make(o->operand, o->tenant, &o->limits, &made, secret, e) < 0 ||
        place_open(o, true, &p, e) < 0 || load_to_change(&p, &keys, &lock, e) < 0 ||
        keys_add_take(&keys, &made, e) < 0 || save(&p, &keys, e) < 0)
        return -1;
    const struct key *k = &keys.items[keys.n - 1];
    int rc = print_secret(o, k, secret, e);
    explicit_bzero(secret, sizeof secret);
    if (rc < 0)
        return -1;
    AUTO_BUF said = BUF_INIT;
    buf_addf(&said, "%s for %s (tenant %s): keep this secret, it is shown only once; ", k->id,
             k->name, k->tenant);
    buf_adds(&said, "a running server takes the key up when `cloche serve` gets SIGHUP");
    report_say(said.data);
    return 0;
}

static int act_list(const struct key_options *o, struct err *e) {
    AUTO_PLACE p = {.fd = -1};
    AUTO_KEYS keys = {0};
    bool there;
    if (place_open(o, false, &p, e) < 0 || load(&p, &keys, &there, e) < 0)
        return -1;
    if (o->json) {
        print_list_json(&keys);
        return 0;
    }
    if (!there) {
        AUTO_BUF said = BUF_INIT;
        buf_addf(&said, "there is no file of keys %s/%s yet", p.dir, p.name);
        report_say(said.data);
    }
    print_table(&keys);
    return 0;
}

static int ambiguous(const struct keys *keys, const char *name, unsigned n, struct err *e) {
    AUTO_BUF ids = BUF_INIT;
    unsigned shown = 0;
    for (unsigned i = 0; i < keys->n && shown < IDS_SHOWN; i++)
        if (strcmp(keys->items[i].name, name) == 0)
            buf_addf(&ids, "%s%s", shown++ ? ", " : "", keys->items[i].id);
    if (n > shown)
        buf_addf(&ids, " and %u more", n - shown);
    return err_user(e, "ambiguous_key", "%u keys have the name %s: %s", n, name, ids.data);
}

/* An id goes before a name that looks like it. */
static int find_key(const struct keys *keys, const char *word, unsigned *ret, struct err *e) {
    unsigned found = 0, n = 0;
    for (unsigned i = 0; i < keys->n; i++) {
        if (strcmp(keys->items[i].id, word) == 0) {
            *ret = i;
            return 0;
        }
        if (strcmp(keys->items[i].name, word) == 0) {
            found = i;
            n++;
        }
    }
    char quoted[96];
    if (n == 0)
        return err_user(e, "unknown_key", "there is no key with the id or name %s",
                        log_quote(word, quoted, sizeof quoted));
    if (n > 1)
        return ambiguous(keys, word, n, e);
    *ret = found;
    return 0;
}

static int act_revoke(const struct key_options *o, struct err *e) {
    AUTO_PLACE p = {.fd = -1};
    AUTO_KEYS keys = {0};
    AUTO_FD lock = -1;
    unsigned at = 0;
    if (place_open(o, false, &p, e) < 0 || load_to_change(&p, &keys, &lock, e) < 0 ||
        find_key(&keys, o->operand, &at, e) < 0 || at >= keys.n) /* the last for the analyser */
        return -1;
    AUTO_BUF said = BUF_INIT;
    const struct key *k = &keys.items[at];
    if (o->json)
        add_key_json(&said, k, NULL);
    else
        buf_addf(&said, "revoked %s (name %s, tenant %s)\n", k->id, k->name, k->tenant);
    /* The file stays when the last key goes: without one the server would ask for no key. */
    keys_remove(&keys, at);
    if (save(&p, &keys, e) < 0)
        return -1;
    fputs(said.data, stdout);
    report_say("a running server accepts the key until `cloche serve` gets SIGHUP");
    return 0;
}

/* ------------------------------------------------------------------ the verb */

static const struct action {
    const char *name, *operand; /* operand: what it needs, or NULL */
    int (*fn)(const struct key_options *o, struct err *e);
} actions[] = {
    {"add", "the key's NAME", act_add},
    {"list", NULL, act_list},
    {"revoke", "the key's ID or NAME", act_revoke},
};

static int find_action(const struct key_options *o, const struct action **ret, struct err *e) {
    char quoted[80];
    if (!o->action)
        return err_user(e, "bad_option", "key: say add, list or revoke");
    const struct action *a = NULL;
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++)
        if (strcmp(actions[i].name, o->action) == 0)
            a = &actions[i];
    if (!a)
        return err_user(e, "bad_option", "key: %s is none of add, list and revoke",
                        log_quote(o->action, quoted, sizeof quoted));
    if (a->operand && !o->operand)
        return err_user(e, "bad_option", "key %s: %s is missing", a->name, a->operand);
    if (!a->operand && o->operand)
        return err_user(e, "bad_option", "key %s: %s is one word too many", a->name,
                        log_quote(o->operand, quoted, sizeof quoted));
    if (o->only_add && a->fn != act_add)
        return err_user(e, "bad_option", "key %s: --%s is for add only", a->name, o->only_add);
    *ret = a;
    return 0;
}

/* The kinds of failure that only this verb has. */
static int fail(const struct err *e, bool json) {
    static const struct failure own[] = {
        {.kind = "bad_keys", .remediation = "mend the file of keys"},
        {.kind = "too_many_keys", .remediation = "revoke those that nobody uses"},
        {.kind = "unknown_key", .remediation = "`cloche key list` lists them"},
        {.kind = "ambiguous_key", .remediation = "name one by its id"},
    };
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        if (strcmp(own[i].kind, e->kind) == 0) {
            struct failure f = own[i];
            f.message = e->text;
            return report_failure(&f, json);
        }
    }
    return report(e, json);
}

int verb_key(int argc, char **argv) {
    struct key_options o;
    struct err e;
    if (parse(argc, argv, &o, &e) < 0)
        return fail(&e, o.json);
    if (o.help)
        return print_help();
    const struct action *a = NULL;
    if (find_action(&o, &a, &e) < 0 || a->fn(&o, &e) < 0)
        return fail(&e, o.json);
    return 0;
}
