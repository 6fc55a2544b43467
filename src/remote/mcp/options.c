/* See options.h. */

#include "remote/mcp/options.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/flags.h"
#include "base/log.h"
#include "cli/limit_flags.h"

#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define CODE_BASE  1000 /* getopt's codes: flag i is CODE_BASE + i */
#define CODE_LIMIT 2000
#define WORDS_MAX  256

enum kind { KIND_FLAG, KIND_TEXT, KIND_LIST, KIND_PAIRS };

#define AT(member) offsetof(struct mcp_options, member)

static const struct flag {
    const char *name;
    enum kind kind;
    size_t offset;
} flags[] = {
    {"help", KIND_FLAG, AT(help)},
    {"server", KIND_TEXT, AT(server)},
    {"key-file", KIND_TEXT, AT(key_file)},
    {"tools", KIND_TEXT, AT(tools)},
    {"sandbox", KIND_TEXT, AT(sandbox)},
    {"profile", KIND_TEXT, AT(profile)},
    {"network", KIND_TEXT, AT(network)},
    {"env", KIND_PAIRS, AT(env)},
    {"env-file", KIND_LIST, AT(env_files)},
    {"bind", KIND_LIST, AT(binds)},
    {"allowed-dir", KIND_LIST, AT(allowed_dirs)},
    {"allowed-domain", KIND_LIST, AT(allowed_domains)},
    {"container-env-var", KIND_PAIRS, AT(env)},
    {"container-env-file", KIND_LIST, AT(env_files)},
    {"container-bind", KIND_LIST, AT(binds)},
    {"container-tag", KIND_TEXT, AT(container_tag)},
    {"client", KIND_TEXT, AT(client)},
};
#define FLAGS (sizeof flags / sizeof flags[0])

static const char help[] =
    "cloche mcp [OPTIONS]\n"
    "cloche mcp config [--client NAME] [OPTIONS]\n"
    "\n"
    "Is an MCP server on stdin and stdout: Claude Desktop, Claude Code, Cursor, VS Code, Codex "
    "and\n"
    "every other client of MCP starts it and gets tools that run Python and shell commands in a\n"
    "sandbox. The sandbox is made by the first call, and ends with this process unless it has a\n"
    "name. Where no server is named it uses one of yours that runs here, or starts one for itself\n"
    "and takes it down at its end.\n"
    "\n"
    "`cloche mcp config` prints what to paste into a client: claude-desktop, claude-code, cursor,\n"
    "vscode, codex; without --client all of them. OPTIONS go into what it prints.\n"
    "\n"
    "  --tools SET             core, files, ipybox or all (core)\n"
    "  --sandbox NAME          use the sandbox of this name; it stays when this process ends\n"
    "  --profile NAME          of the sandbox: auto (the one with most modules), base, data, …\n"
    "  --network RULES         what it may reach: none, open, or names, addresses and @sets with\n"
    "                          commas\n"
    "  --env NAME=VALUE        a variable in it; may be repeated\n"
    "  --env-file FILE         variables, a line each; may be repeated\n"
    "  --bind HOST:PATH        a directory of the server's machine in it, where the server allows\n"
    "                          that; may be repeated\n"
    "  --allowed-dir DIR       with the tools of ipybox: where upload_file may read and\n"
    "                          download_file may write; may be repeated (home and /tmp)\n"
    "  --allowed-domain NAME   one more that the sandbox may reach; may be repeated\n"
    "\n"
    "--container-env-var, --container-env-file and --container-bind mean --env, --env-file and\n"
    "--bind, as of `ipybox mcp`; --container-tag is taken and means nothing.\n"
    "\n"
    "Limits of the sandbox:";

static const char server_help[] =
    "\n"
    "  --server URL        http://HOST:PORT, https://HOST or unix:PATH; or in CLOCHE_SERVER\n"
    "  --key-file FILE     the API key for it; or in CLOCHE_API_KEY";

void mcp_options_help(void) {
    puts(help);
    limit_flags_help(LIMIT_OF_WHOLE, 26);
    puts(server_help);
}

static int add_word(const struct flag *f, struct mcp_words *w, const char *text, struct err *e) {
    const char *equals = strchr(text, '=');
    char quoted[64];
    if (f->kind == KIND_PAIRS && (!equals || equals == text))
        return err_user(e, "bad_value", "--%s is %s; it must be NAME=VALUE", f->name,
                        log_quote(text, quoted, sizeof quoted));
    if (w->n == WORDS_MAX)
        return err_user(e, "bad_value", "--%s is there more than %d times", f->name, WORDS_MAX);
    w->items = xrealloc(w->items, (w->n + 1) * sizeof *w->items);
    w->items[w->n++] = text;
    return 0;
}

static int set_flag(struct mcp_options *o, const struct flag *f, const char *text, struct err *e) {
    void *to = (char *)o + f->offset;
    switch (f->kind) {
    case KIND_FLAG:
        *(bool *)to = true;
        return 0;
    case KIND_TEXT:
        *(const char **)to = text;
        return 0;
    case KIND_LIST:
    case KIND_PAIRS:
        return add_word(f, to, text, e);
    }
    return 0;
}

static int check_name(const char *flag, const char *name, const char *letters, size_t most,
                      const char *what, struct err *e) {
    char quoted[80];
    size_t n = name ? strlen(name) : 0;
    if (!name || (n >= 1 && n <= most && strspn(name, letters) == n))
        return 0;
    return err_user(e, "bad_value", "%s is %s; it must have 1 to %zu %s", flag,
                    log_quote(name, quoted, sizeof quoted), most, what);
}

/* As the tools' argument `sandbox`, and as names of profiles. */
static int check_names(const struct mcp_options *o, struct err *e) {
    static const char upper[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-",
                      lower[] = "abcdefghijklmnopqrstuvwxyz0123456789_-";
    if (check_name("--sandbox", o->sandbox, upper, 64, "letters, digits and -", e) < 0)
        return -1;
    return check_name("--profile", o->profile, lower, 32, "of a-z, digits, _ and -", e);
}

static int check_word(const char *flag, const char *word, const char *const *words, const char *all,
                      struct err *e) {
    char quoted[80];
    for (; word && *words; words++)
        if (strcmp(word, *words) == 0)
            return 0;
    return !word ? 0
                 : err_user(e, "bad_value", "%s is %s; it must be %s", flag,
                            log_quote(word, quoted, sizeof quoted), all);
}

static int check(const struct mcp_options *o, struct err *e) {
    static const char *const sets[] = {"core", "files", "ipybox", "all", NULL};
    static const char *const clients[] = {"claude-desktop", "claude-code", "cursor",
                                          "vscode",         "codex",       NULL};
    if (o->client && !o->config)
        return err_user(e, "bad_option", "mcp: --client is for `cloche mcp config`");
    if (check_names(o, e) < 0)
        return -1;
    if (check_word("--tools", o->tools, sets, "core, files, ipybox or all", e) < 0)
        return -1;
    return check_word("--client", o->client, clients,
                      "claude-desktop, claude-code, cursor, vscode or codex", e);
}

int mcp_options_parse(struct mcp_options *o, int argc, char **argv, struct err *e) {
    struct option longs[FLAGS + LIMITS_ + 1] = {0};
    int code;
    for (size_t i = 0; i < FLAGS; i++)
        longs[i] = (struct option){flags[i].name,
                                   flags[i].kind == KIND_FLAG ? no_argument : required_argument,
                                   NULL, (int)(CODE_BASE + i)};
    limit_flags_options(longs + FLAGS, CODE_LIMIT);
    if (argc > 1 && strcmp(argv[1], "config") == 0) {
        o->config = true;
        argc--;
        argv++;
    }
    optind = 0;
    opterr = 0;
    while ((code = getopt_long(argc, argv, "-:h", longs, NULL)) != -1) {
        char quoted[80];
        if (code == '?' || code == ':')
            return flags_bad("mcp", code, argv, longs, e);
        if (code == 1)
            return err_user(e, "bad_option", "mcp: %s is one word too many",
                            log_quote(optarg, quoted, sizeof quoted));
        int rc = code >= CODE_LIMIT
                     ? limit_flags_read((size_t)(code - CODE_LIMIT), optarg, &o->limits, e)
                     : set_flag(o, &flags[code == 'h' ? 0 : code - CODE_BASE], optarg, e);
        if (rc < 0)
            return -1;
    }
    if (optind < argc)
        return err_user(e, "bad_option", "mcp: nothing may stand behind --");
    return o->help ? 0 : check(o, e);
}

void mcp_options_done(struct mcp_options *o) {
    struct mcp_words *const all[] = {&o->env, &o->env_files, &o->binds, &o->allowed_dirs,
                                     &o->allowed_domains};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        ptr_free(&all[i]->items);
}
