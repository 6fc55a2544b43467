/* See options.h. One table says which option belongs to which verbs and where its value goes;
 * getopt gets those of one verb. */

#include "remote/sandbox/options.h"

#include "base/buf.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/nearest.h"
#include "base/num.h"
#include "cli/limit_flags.h"
#include "cli/report.h"
#include "remote/sandbox/verbs.h"

#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BIT(verb) (1u << (verb))
#define MAKES     (BIT(SANDBOX_CREATE) | BIT(SANDBOX_PROMPT))
#define RUNS      (BIT(SANDBOX_EXEC) | BIT(SANDBOX_PROMPT))
#define ALL       (BIT(SANDBOX_VERBS_) - 1)

enum kind { KIND_FLAG, KIND_TEXT, KIND_PAIRS, KIND_LIST, KIND_NUMBER, KIND_LIMIT };

#define AT(member) offsetof(struct sandbox_options, member)

/* The limits: which verbs take those of which scope. */
#define TAKES_CALL              RUNS
#define TAKES_CELL              MAKES | BIT(SANDBOX_EXEC)
#define TAKES_SANDBOX           MAKES | BIT(SANDBOX_EXEC)
#define TAKES_KERNEL            MAKES | BIT(SANDBOX_EXEC)
#define NAMED(name, flag, unit) "--" flag
#define LIMIT_FLAG(member, type, scope, named, ...)                                                \
    {named, 0, KIND_LIMIT, TAKES_##scope, AT(limits)},

static const struct flag {
    const char *name;
    char letter; /* or NUL */
    enum kind kind;
    unsigned verbs;
    size_t offset;
    uint64_t min, max;
} flags[] = {
    {"--help", 'h', KIND_FLAG, ALL, AT(help)},
    {"--server", 0, KIND_TEXT, ALL, AT(server)},
    {"--key-file", 0, KIND_TEXT, ALL, AT(key_file)},
    {"--json", 0, KIND_FLAG,
     BIT(SANDBOX_CREATE) | BIT(SANDBOX_LIST) | BIT(SANDBOX_SHOW) | BIT(SANDBOX_EXEC) |
         BIT(SANDBOX_LS) | BIT(SANDBOX_LOGS) | BIT(SANDBOX_PORTS) | BIT(SANDBOX_LINK),
     AT(json)},
    {"--profile", 0, KIND_TEXT, MAKES, AT(profile)},
    {"--name", 0, KIND_TEXT, MAKES, AT(name)},
    {"--ttl", 0, KIND_NUMBER, MAKES | BIT(SANDBOX_EXTEND) | BIT(SANDBOX_LINK), AT(ttl_s), 1,
     UINT32_MAX},
    {"--idle", 0, KIND_NUMBER, MAKES | BIT(SANDBOX_EXTEND), AT(idle_s), 1, UINT32_MAX},
    {"--metadata", 0, KIND_PAIRS, MAKES | BIT(SANDBOX_LIST) | BIT(SANDBOX_DELETE), AT(metadata)},
    {"--all", 0, KIND_FLAG, BIT(SANDBOX_DELETE), AT(all)},
    {"--file", 0, KIND_LIST, MAKES, AT(files)},
    {"--env", 0, KIND_PAIRS, MAKES | BIT(SANDBOX_EXEC), AT(env)},
    {"--network", 0, KIND_TEXT, MAKES, AT(network)},
    {"--listen", 0, KIND_FLAG, BIT(SANDBOX_CREATE), AT(listen)},
    {"--allow", 0, KIND_LIST, BIT(SANDBOX_NETWORK), AT(allow)},
    {"--none", 0, KIND_FLAG, BIT(SANDBOX_NETWORK), AT(none)},
    {"--open", 0, KIND_FLAG, BIT(SANDBOX_NETWORK), AT(open)},
    {"--kernel", 0, KIND_TEXT, RUNS | BIT(SANDBOX_INTERRUPT) | BIT(SANDBOX_RESTART), AT(kernel)},
    {"--code", 'c', KIND_TEXT, BIT(SANDBOX_EXEC), AT(code)},
    {"--shell", 0, KIND_TEXT, BIT(SANDBOX_EXEC), AT(shell)},
    {"--cwd", 0, KIND_TEXT, BIT(SANDBOX_EXEC) | BIT(SANDBOX_TERMINAL), AT(cwd)},
    {"--stdin", 0, KIND_FLAG, BIT(SANDBOX_EXEC), AT(uses_stdin)},
    {"--background", 0, KIND_FLAG, BIT(SANDBOX_EXEC), AT(background)},
    {"--images", 0, KIND_TEXT, RUNS, AT(images)},
    {"--image-dir", 0, KIND_TEXT, RUNS, AT(image_dir)},
    {"--keep", 0, KIND_FLAG, BIT(SANDBOX_PROMPT), AT(keep)},
    {"--long", 'l', KIND_FLAG, BIT(SANDBOX_LS), AT(details)},
    {"--recursive", 'R', KIND_FLAG, BIT(SANDBOX_LS), AT(recursive)},
    {"--follow", 'f', KIND_FLAG, BIT(SANDBOX_LOGS), AT(follow)},
    LIMITS(LIMIT_FLAG) /* last: their order is that of limits_info */
};
#define FLAGS       (sizeof flags / sizeof flags[0])
#define FIRST_LIMIT (FLAGS - LIMITS_)

static const char server_help[] =
    "\n"
    "  --server URL        http://HOST:PORT, https://HOST or unix:PATH; or in CLOCHE_SERVER\n"
    "                      (http://127.0.0.1:8000)\n"
    "  --key-file FILE     the API key for it; or in CLOCHE_API_KEY\n"
    "\n"
    "ID is an id, the beginning of one, or a name.";

static void help_limits(const char *title, unsigned scopes) {
    if (!title)
        return;
    printf("\n%s\n", title);
    limit_flags_help(scopes, 22);
}

void sandbox_options_help(enum sandbox_verb verb) {
    if (verb != SANDBOX_VERBS_) {
        puts(sandbox_verbs[verb].help);
        help_limits(sandbox_verbs[verb].of_sandbox, LIMIT_OF_WHOLE);
        help_limits(sandbox_verbs[verb].of_execution,
                    RUNS & BIT(verb) ? LIMIT_OF_EXECUTION : LIMIT_OF_CELL);
        puts(server_help);
        return;
    }
    puts("cloche sandbox VERB …: live sandboxes of a server\n");
    for (size_t i = 0; i < SANDBOX_PROMPT; i++)
        printf("  cloche sandbox %-10s %s\n", sandbox_verbs[i].name, sandbox_verbs[i].about);
    puts(server_help);
    puts("`cloche sandbox VERB --help` says more. `cloche shell` opens a Python prompt.");
}

/* "sandbox exec" or "shell", for messages. */
static const char *verb_words(enum sandbox_verb verb, char *out, size_t cap) {
    snprintf(out, cap, "%s%s", verb == SANDBOX_PROMPT ? "" : "sandbox ", sandbox_verbs[verb].name);
    return out;
}

static void add_word(struct sandbox_words *w, const char *text) {
    w->items = xrealloc(w->items, (w->n + 1) * sizeof *w->items);
    w->items[w->n++] = text;
}

static int add_pair(const struct flag *f, struct sandbox_words *w, const char *text,
                    struct err *e) {
    const char *equals = strchr(text, '=');
    if (!equals || equals == text) {
        char quoted[64];
        return err_user(e, "bad_value", "%s is %s; it must be NAME=VALUE", f->name,
                        log_quote(text, quoted, sizeof quoted));
    }
    add_word(w, text);
    return 0;
}

static int set_flag(struct sandbox_options *o, const struct flag *f, const char *text,
                    struct err *e) {
    void *to = (char *)o + f->offset;
    const struct num_rule rule = {f->name, f->min, f->max};
    switch (f->kind) {
    case KIND_FLAG:
        *(bool *)to = true;
        return 0;
    case KIND_TEXT:
        *(const char **)to = text;
        return 0;
    case KIND_PAIRS:
        return add_pair(f, to, text, e);
    case KIND_LIST:
        add_word(to, text);
        return 0;
    case KIND_NUMBER:
        return num_u32(text, &rule, to, e);
    case KIND_LIMIT:
        return limit_flags_read((size_t)(f - flags) - FIRST_LIMIT, text, to, e);
    }
    return 0;
}

#define CODE_BASE 1000 /* getopt's codes: flag i is CODE_BASE + i */

/* The options of one verb, for getopt; returns those with a letter. */
static void fill_longs(enum sandbox_verb verb, struct option *longs, char *letters) {
    *letters++ = '-';
    *letters++ = ':';
    for (size_t i = 0; i < FLAGS; i++) {
        const struct flag *f = &flags[i];
        if (!(f->verbs & BIT(verb)))
            continue;
        int has = f->kind == KIND_FLAG ? no_argument : required_argument;
        *longs++ = (struct option){f->name + 2, has, NULL, (int)(CODE_BASE + i)};
        if (!f->letter)
            continue;
        *letters++ = f->letter;
        if (has == required_argument)
            *letters++ = ':';
    }
    *longs = (struct option){0};
    *letters = '\0';
}

static const struct flag *find_flag(int code) {
    if (code >= CODE_BASE)
        return &flags[code - CODE_BASE];
    for (size_t i = 0; i < FLAGS; i++)
        if (flags[i].letter == code)
            return &flags[i];
    return NULL;
}

static int check_exec(const struct sandbox_options *o, struct err *e) {
    bool is_command = o->shell || o->command.n;
    unsigned programs = (o->words.n > 1) + !!o->code + !!o->shell + (o->command.n > 0);
    if (programs != 1)
        return err_user(e, "bad_option",
                        programs ? "sandbox exec: say one of CODE, -c CODE, FILE, -, --shell LINE "
                                   "and -- COMMAND, not several"
                                 : "sandbox exec: nothing to run: say CODE, -c CODE, FILE, -, "
                                   "--shell LINE or -- COMMAND");
    if (is_command && o->kernel)
        return err_user(e, "bad_option", "sandbox exec: --kernel is for Python, not for commands");
    if (is_command && o->limits.cpu_seconds)
        return err_user(e, "bad_option", "sandbox exec: --cpu is for Python, not for commands");
    if (!is_command && (o->cwd || o->background || o->uses_stdin))
        return err_user(e, "bad_option", "sandbox exec: %s is for commands (--shell LINE or --)",
                        o->cwd          ? "--cwd"
                        : o->background ? "--background"
                                        : "--stdin");
    return 0;
}

/* What belongs to a sandbox that is about to be made has no meaning for one that is there. */
static int check_prompt(const struct sandbox_options *o, struct err *e) {
    if (!o->words.n)
        return o->kernel ? err_user(e, "bad_option", "shell: --kernel needs the sandbox's ID") : 0;
    if (o->profile || o->name || o->ttl_s || o->idle_s || limits_any(&o->limits, LIMIT_OF_WHOLE) ||
        o->metadata.n || o->files.n || o->env.n || o->keep || o->network)
        return err_user(e, "bad_option",
                        "shell: an ID names a sandbox that is there; options for a fresh one "
                        "(--profile, --keep, …) have no meaning for it");
    return 0;
}

static int check_images(const char *how, struct err *e) {
    static const char *const words[] = {"auto", "inline", "files", "off"};
    char quoted[64];
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!how || strcmp(how, words[i]) == 0)
            return 0;
    return err_user(e, "bad_value", "--images is %s; it must be auto, inline, files or off",
                    log_quote(how, quoted, sizeof quoted));
}

static int check_network(const struct sandbox_options *o, struct err *e) {
    if ((o->allow.n > 0) + o->none + o->open > 1)
        return err_user(e, "bad_option",
                        "sandbox network: --allow, --none and --open exclude each other");
    return 0;
}

static int check_delete(const struct sandbox_options *o, struct err *e) {
    if (!o->words.n && !o->all)
        return err_user(e, "bad_option", "sandbox delete: the sandbox's ID is missing");
    if (o->words.n && o->all)
        return err_user(e, "bad_option", "sandbox delete: an ID and --all exclude each other");
    if (o->metadata.n && !o->all)
        return err_user(e, "bad_option", "sandbox delete: --metadata is for --all");
    return 0;
}

static int check_words(const struct sandbox_options *o, struct err *e) {
    const struct sandbox_verb_words *v = &sandbox_verbs[o->verb];
    char words[32], quoted[80];
    verb_words(o->verb, words, sizeof words);
    if (o->words.n < v->min)
        return err_user(e, "bad_option", "%s: %s is missing", words, v->missing);
    if (o->words.n > v->max)
        return err_user(e, "bad_option", "%s: %s is one word too many", words,
                        log_quote(o->words.items[v->max], quoted, sizeof quoted));
    if (check_images(o->images, e) < 0)
        return -1;
    if (o->verb == SANDBOX_LOGS && o->follow && o->words.n < 2)
        return err_user(e, "bad_option", "sandbox logs: -f needs the COMMAND to follow");
    if (o->verb == SANDBOX_LOGS && o->follow && o->json)
        return err_user(e, "bad_option", "sandbox logs: -f and --json exclude each other");
    return o->verb == SANDBOX_EXEC     ? check_exec(o, e)
           : o->verb == SANDBOX_DELETE ? check_delete(o, e)
           : o->verb == SANDBOX_PROMPT ? check_prompt(o, e)
                                       : check_network(o, e);
}

static int parse_words(int argc, char **argv, struct sandbox_options *o, struct err *e) {
    struct option longs[FLAGS + 1];
    char letters[2 * FLAGS + 3], words[32];
    fill_longs(o->verb, longs, letters);
    optind = 0;
    opterr = 0;
    int code;
    while ((code = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
        if (code == '?' || code == ':')
            return flags_bad(verb_words(o->verb, words, sizeof words), code, argv, longs, e);
        if (code == 1) { /* not an option */
            add_word(&o->words, optarg);
            continue;
        }
        const struct flag *f = find_flag(code);
        if (!f)
            return err_set(e, 0, "option code %d", code);
        if (set_flag(o, f, optarg, e) < 0)
            return -1;
    }
    for (; optind < argc; optind++) /* behind -- */
        add_word(o->verb == SANDBOX_EXEC ? &o->command : &o->words, argv[optind]);
    return o->help ? 0 : check_words(o, e);
}

static int find_verb(const char *word, enum sandbox_verb *ret, struct err *e) {
    for (unsigned i = 0; i < SANDBOX_PROMPT; i++) {
        if (strcmp(sandbox_verbs[i].name, word) == 0) {
            *ret = (enum sandbox_verb)i;
            return 0;
        }
    }
    struct nearest near = {.word = word};
    AUTO_BUF names = BUF_INIT;
    for (unsigned i = 0; i < SANDBOX_PROMPT; i++) {
        nearest_offer(&near, sandbox_verbs[i].name);
        buf_addf(&names, "%s%s", i ? ", " : "", sandbox_verbs[i].name);
    }
    return report_bad_verb("sandbox: ", &near, names.data, e);
}

int sandbox_options_parse(int argc, char **argv, struct sandbox_options *ret, struct err *e) {
    *ret = (struct sandbox_options){.json = report_wants_json(argc, argv), .verb = SANDBOX_PROMPT};
    if (strcmp(argv[0], "shell") == 0)
        return parse_words(argc, argv, ret, e);
    ret->verb = SANDBOX_VERBS_;
    if (argc < 2)
        return err_user(e, "bad_option", "sandbox: say what to do: create, list, exec, …");
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        ret->help = true;
        return 0;
    }
    if (find_verb(argv[1], &ret->verb, e) < 0)
        return -1;
    return parse_words(argc - 1, argv + 1, ret, e);
}

void sandbox_options_done(struct sandbox_options *o) {
    free(o->metadata.items);
    free(o->env.items);
    free(o->files.items);
    free(o->words.items);
    free(o->command.items);
    *o = (struct sandbox_options){0};
}
