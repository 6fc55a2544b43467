/* `cloche mcp`: finds or starts the server, then pump.c until the client leaves, then the end of
 * what was only for this client. */

#include "remote/mcp/mcp_cmd.h"

#include "base/fd.h"
#include "cli/mcp.h"
#include "cli/remote.h"
#include "cli/report.h"
#include "remote/mcp/clients.h"
#include "remote/mcp/home.h"
#include "remote/mcp/host_files.h"
#include "remote/mcp/options.h"
#include "remote/mcp/own.h"
#include "remote/mcp/pump.h"
#include "remote/net/call.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define NEAR_S 5 /* for a server of this machine to answer */

struct mcp_cmd {
    struct mcp_options o;
    struct home home;
    struct own_server own;
    struct remote *remote; /* owned; NULL until there is one */
    bool uses_own;
    int signals;
    struct pump pump;
};

static int take_signals(struct mcp_cmd *m, struct err *e) {
    sigset_t all;
    sigemptyset(&all);
    sigaddset(&all, SIGINT);
    sigaddset(&all, SIGTERM);
    sigaddset(&all, SIGHUP);
    sigprocmask(SIG_BLOCK, &all, NULL);
    m->signals = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
    return m->signals < 0 ? err_sys(e, "signalfd") : 0;
}

/* Whether the server that runs here is one for us: it answers, and lets us in. */
static bool try_near(struct mcp_cmd *m, const char *url) {
    struct err ignored;
    AUTO_REMOTE r = NULL;
    AUTO_REPLY reply = REMOTE_REPLY_INIT;
    const struct remote_call c = {
        .method = "GET", .path = "/v1/sandboxes?limit=1", .upload = -1, .within_s = NEAR_S};
    if (remote_open(url, m->o.key_file, m->signals, &r, &ignored) < 0 ||
        remote_do(r, &c, &reply, &ignored) < 0 || reply.status != 200) {
        AUTO_BUF note = BUF_INIT;
        buf_addf(&note,
                 "the server at %s takes no requests from here (no key?); using one of "
                 "its own",
                 url);
        report_say(note.data);
        return false;
    }
    m->remote = r;
    r = NULL;
    return true;
}

static int start_own(struct mcp_cmd *m, struct err *e) {
    AUTO_FREE char *url = NULL;
    if (m->own.fd < 0)
        return err_user(e, "no_server", "no server is named: see --server");
    if (own_server_start(&m->own, &m->o, m->signals, &url, e) < 0)
        return -1;
    m->uses_own = true;
    /* SECURITY: the key of another server is nothing for this one. */
    unsetenv("CLOCHE_API_KEY");
    return url ? remote_open(url, NULL, m->signals, &m->remote, e) : 0;
}

static int reach_server(struct mcp_cmd *m, struct err *e) {
    const char *named = remote_named(m->o.server), *near = getenv(MCP_NEAR_VARIABLE);
    if (named)
        return remote_open(named, m->o.key_file, m->signals, &m->remote, e);
    if (near && try_near(m, near))
        return 0;
    return start_own(m, e);
}

static int run(struct mcp_cmd *m, struct err *e) {
    if (take_signals(m, e) < 0 || home_make(&m->home, &m->o, e) < 0 || reach_server(m, e) < 0)
        return -1;
    if (!m->remote)
        return 0; /* a signal came */
    if (!m->uses_own)
        own_server_end(&m->own);
    m->pump = (struct pump){.remote = m->remote,
                            .signals = m->signals,
                            .own = m->own.fd,
                            .path = m->home.path.data,
                            .header = m->home.header.len ? m->home.header.data : NULL,
                            .lines = LINES_INIT,
                            .out = OUT_INIT};
    if (host_files_new(&m->o, &m->home, &m->pump.files, e) < 0)
        return -1;
    return pump_run(&m->pump, e);
}

static void mcp_cmd_done(struct mcp_cmd *m) {
    pump_done(&m->pump);
    if (m->remote && !m->uses_own && m->pump.called)
        home_end(&m->home, m->remote);
    host_files_free(m->pump.files);
    remote_free(m->remote);
    own_server_end(&m->own);
    home_done(&m->home);
    mcp_options_done(&m->o);
    fd_close(&m->signals);
}

int remote_mcp(int argc, char **argv) {
    struct mcp_cmd m = {
        .home = HOME_INIT, .signals = -1, .pump = {.lines = LINES_INIT, .out = OUT_INIT}};
    struct err e;
    int status = 0;
    own_server_find(&m.own);
    if (mcp_options_parse(&m.o, argc, argv, &e) < 0) {
        status = report(&e, false);
    } else if (m.o.help) {
        mcp_options_help();
    } else if (m.o.config) {
        clients_print(&m.o, argc, argv);
    } else {
        if (m.o.container_tag)
            report_say("--container-tag means nothing here: --profile chooses what is installed");
        status = run(&m, &e) < 0 ? report(&e, false) : m.pump.signal ? 128 + m.pump.signal : 0;
    }
    mcp_cmd_done(&m);
    return status;
}
