/* See clients.h. Each client has a file and a form of its own: where the servers stand in it, what
 * an entry says of its kind, and how it takes a key from the environment instead of from the file.
 */

#include "remote/mcp/clients.h"

#include "base/buf.h"
#include "base/fd.h"
#include "cli/mcp.h"
#include "cli/remote.h"
#include "remote/mcp/home.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_URL "http://127.0.0.1:8000"

struct paste {
    const char *program; /* the path of cloche: programs with windows have another PATH */
    json_t *args;        /* owned: an array: "mcp", … */
    struct buf url;      /* of the server's MCP */
};

struct client {
    const char *name, *title;
    void (*print)(const struct client *c, const struct paste *p);
    const char *file;    /* where it goes */
    const char *servers; /* the member of the file that has them */
    const char *stdio;   /* the `type` of such an entry; or NULL */
    const char *http;    /* likewise */
    const char *bearer;  /* what stands for the key's header: a variable of the environment */
};

static json_t *stdio_entry(const struct client *c, const struct paste *p) {
    json_t *entry = json_object();
    if (c->stdio)
        json_object_set_new(entry, "type", json_string(c->stdio));
    json_object_set_new(entry, "command", json_string(p->program));
    json_object_set(entry, "args", p->args);
    return entry;
}

static json_t *http_entry(const struct client *c, const struct paste *p) {
    json_t *entry = json_object(), *headers = json_object();
    if (c->http)
        json_object_set_new(entry, "type", json_string(c->http));
    json_object_set_new(entry, "url", json_string(p->url.data));
    json_object_set_new(headers, "Authorization", json_string(c->bearer));
    json_object_set_new(entry, "headers", headers);
    return entry;
}

/* Takes the entry over. `more` is another member of the file, or NULL. */
static void print_file(const char *servers, json_t *entry, const char *name, json_t *more) {
    json_auto_t *file = json_object();
    json_t *all = json_object();
    if (more)
        json_object_set_new(file, name, more);
    json_object_set_new(all, "cloche", entry);
    json_object_set_new(file, servers, all);
    AUTO_FREE char *text = json_dumps(file, JSON_INDENT(2));
    printf("%s\n", text ? text : "");
}

/* For a shell. */
static void print_word(const char *text) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "-_=./:,@+";
    if (*text && strspn(text, plain) == strlen(text)) {
        printf("%s", text);
        return;
    }
    putchar('\'');
    for (; *text; text++)
        printf(*text == '\'' ? "'\\''" : "%c", *text);
    putchar('\'');
}

static void print_words(const struct paste *p) {
    const json_t *word;
    size_t i;
    print_word(p->program);
    json_array_foreach(p->args, i, word) {
        putchar(' ');
        print_word(json_string_value(word));
    }
    puts("");
}

/* ---- each client ---- */

static void print_json_client(const struct client *c, const struct paste *p) {
    printf("# %s: %s\n", c->title, c->file);
    print_file(c->servers, stdio_entry(c, p), NULL, NULL);
    printf("\n# %s, a server over HTTP: in the same file\n", c->title);
    print_file(c->servers, http_entry(c, p), NULL, NULL);
}

/* It takes no URL in its file; mcp-remote is one over stdio. */
static void print_claude_desktop(const struct client *c, const struct paste *p) {
    printf("# %s: %s\n", c->title, c->file);
    print_file(c->servers, stdio_entry(c, p), NULL, NULL);
    printf("\n# %s, a server over HTTP (needs Node.js): in the same file\n", c->title);
    json_t *entry =
        json_pack("{s:s, s:[s, s, s, s, s], s:{s:s}}", "command", "npx", "args", "-y", "mcp-remote",
                  p->url.data, "--header", "Authorization:${CLOCHE_AUTHORIZATION}", "env",
                  "CLOCHE_AUTHORIZATION", "Bearer YOUR_KEY");
    print_file(c->servers, entry, NULL, NULL);
}

static void print_claude_code(const struct client *c, const struct paste *p) {
    printf("# %s: run\nclaude mcp add cloche -- ", c->title);
    print_words(p);
    printf("\n# %s, a server over HTTP: run\n"
           "claude mcp add --transport http cloche ",
           c->title);
    print_word(p->url.data);
    puts(" --header \"Authorization: Bearer $CLOCHE_API_KEY\"");
    printf("\n# %s, for everybody who works in a directory: %s\n", c->title, c->file);
    print_file(c->servers, stdio_entry(c, p), NULL, NULL);
}

/* It asks for the key once and keeps it. */
static void print_vscode(const struct client *c, const struct paste *p) {
    printf("# %s: %s\n", c->title, c->file);
    print_file(c->servers, stdio_entry(c, p), NULL, NULL);
    printf("\n# %s, a server over HTTP: in the same file\n", c->title);
    json_t *inputs = json_pack("[{s:s, s:s, s:s, s:b}]", "type", "promptString", "id", "cloche-key",
                               "description", "API key of cloche", "password", 1);
    print_file(c->servers, http_entry(c, p), "inputs", inputs);
}

/* TOML's basic strings are written as JSON's. */
static void print_toml(const char *key, const json_t *value) {
    AUTO_FREE char *text = json_dumps(value, JSON_ENCODE_ANY);
    printf("%s = %s\n", key, text ? text : "");
}

static void print_codex(const struct client *c, const struct paste *p) {
    json_auto_t *program = json_string(p->program), *url = json_string(p->url.data);
    printf("# %s: %s\n[mcp_servers.cloche]\n", c->title, c->file);
    print_toml("command", program);
    print_toml("args", p->args);
    printf("tool_timeout_sec = 300\n"
           "\n# %s, a server over HTTP: in the same file\n[mcp_servers.cloche]\n",
           c->title);
    print_toml("url", url);
    printf("bearer_token_env_var = \"CLOCHE_API_KEY\"\ntool_timeout_sec = 300\n");
}

static const struct client clients[] = {
    {"claude-desktop", "Claude Desktop", print_claude_desktop,
     "claude_desktop_config.json (Settings, Developer, Edit Config), then start it again",
     "mcpServers", NULL, NULL, NULL},
    {"claude-code", "Claude Code", print_claude_code, ".mcp.json in it", "mcpServers", "stdio",
     "http", "Bearer ${CLOCHE_API_KEY}"},
    {"cursor", "Cursor", print_json_client, "~/.cursor/mcp.json, or .cursor/mcp.json in a project",
     "mcpServers", NULL, NULL, "Bearer ${env:CLOCHE_API_KEY}"},
    {"vscode", "VS Code", print_vscode,
     ".vscode/mcp.json in a workspace, or the command \"MCP: Open User Configuration\"", "servers",
     "stdio", "http", "Bearer ${input:cloche-key}"},
    {"codex", "Codex", print_codex, "~/.codex/config.toml", NULL, NULL, NULL, NULL},
};

/* ---- what is pasted ---- */

/* Those that say what the paste itself is, and their values. */
static size_t skip_option(const char *word) {
    static const char *const ours[] = {"--client", "--server"};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
        size_t len = strlen(ours[i]);
        if (strncmp(word, ours[i], len) == 0)
            return word[len] == '=' ? 1 : word[len] ? 0 : 2;
    }
    return 0;
}

void clients_print(const struct mcp_options *o, int argc, char **argv) {
    const char *server = remote_named(o->server), *program = getenv(MCP_PROGRAM_VARIABLE);
    struct paste p = {
        .program = program ? program : "cloche", .args = json_pack("[s]", "mcp"), .url = BUF_INIT};
    bool is_http = server && strncmp(server, "http", 4) == 0;
    bool is_first = true;
    if (server) {
        json_array_append_new(p.args, json_string("--server"));
        json_array_append_new(p.args, json_string(server));
    }
    for (int i = 2; i < argc;) {
        size_t skip = skip_option(argv[i]);
        if (!skip)
            json_array_append_new(p.args, json_string(argv[i]));
        i += skip ? (int)skip : 1;
    }
    home_url(o, is_http ? server : DEFAULT_URL, &p.url);
    for (size_t i = 0; i < sizeof clients / sizeof *clients; i++) {
        if (o->client && strcmp(o->client, clients[i].name) != 0)
            continue;
        if (!is_first)
            puts("");
        is_first = false;
        clients[i].print(&clients[i], &p);
    }
    json_decref(p.args);
    buf_done(&p.url);
}
