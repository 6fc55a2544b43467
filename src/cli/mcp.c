/* See mcp.h. */

#include "cli/mcp.h"

#include "base/buf.h"
#include "base/fd.h"
#include "cli/remote.h"
#include "cli/report.h"
#include "config/options.h"
#include "supervisor/keeper.h"
#include "supervisor/listen.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Its other options are read where they are used. */
static bool needs_server(int argc, char **argv) {
    const char *named = NULL;
    if (argc > 1 && strcmp(argv[1], "config") == 0)
        return false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return false;
        if (strncmp(argv[i], "--server", 8) == 0)
            named = argv[i];
    }
    return !remote_named(named);
}

/* SECURITY: whoever listens on a port may be anybody; a server is ours when the engine's socket,
 * which only we could make, has one behind it. */
static void find_near(struct options *o) {
    struct err ignored;
    AUTO_FD sock = -1;
    AUTO_BUF url = BUF_INIT;
    if (listen_connect(options_text(o, "socket"), &sock, &ignored) < 0 ||
        strcmp(options_text(o, "http"), "on") != 0)
        return;
    const char *host = options_text(o, "host"), *path = options_text(o, "http_socket");
    bool is_any = strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0;
    bool is_v6 = strchr(host, ':') != NULL;
    if (*path)
        buf_addf(&url, "unix:%s", path);
    else
        buf_addf(&url, "http://%s%s%s:%s", is_v6 && !is_any ? "[" : "", is_any ? "127.0.0.1" : host,
                 is_v6 && !is_any ? "]" : "", options_text(o, "port"));
    setenv(MCP_NEAR_VARIABLE, url.data, 1);
}

static int prepare(struct err *e) {
    char number[16];
    int fd;
    AUTO_OPTIONS o = options_new();
    if (options_load(o, e) < 0)
        return -1;
    find_near(o);
    if (keeper_start(&fd, e) < 0)
        return -1;
    snprintf(number, sizeof number, "%d", fd);
    setenv(MCP_OWN_VARIABLE, number, 1);
    return 0;
}

static void tell_program(void) {
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n > 0) {
        path[n] = '\0';
        setenv(MCP_PROGRAM_VARIABLE, path, 1);
    }
}

int verb_mcp(int argc, char **argv) {
    struct err e;
    tell_program();
    unsetenv(MCP_OWN_VARIABLE);
    unsetenv(MCP_NEAR_VARIABLE);
    if (needs_server(argc, argv) && prepare(&e) < 0)
        return report(&e, false);
    return remote_exec(argv, false);
}
