/* `cloche status`: how a running engine is doing, asked on its socket; with --server URL another
 * program of ours asks over HTTP (remote.h). */

#include "cli/status.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"
#include "cli/remote.h"
#include "cli/report.h"
#include "cli/state.h"
#include "config/options.h"
#include "supervisor/listen.h"
#include "wire/codec.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ANSWER_MS 10000
#define STATE_MAX (4u << 20)

static void print_help(void) {
    puts("cloche status [--json] [--socket PATH | --server URL [--key-file FILE]]\n"
         "\n"
         "Says how a running engine is doing: since when it is up, its profiles, what runs and "
         "what\n"
         "waits. Without a server it asks the engine of this machine on its socket.\n"
         "\n"
         "  --server URL      http://HOST:PORT, https://HOST or unix:PATH; or in CLOCHE_SERVER\n"
         "  --key-file FILE   the API key for it; or in CLOCHE_API_KEY\n"
         "  --socket PATH     the engine's socket\n"
         "  --config FILE     the configuration that names it\n"
         "  --json            one line of JSON\n"
         "\n"
         "Exit status 0, or 125 when none answers.");
}

static int read_state(int fd, struct buf *to, struct err *e) {
    for (;;) {
        ssize_t n = pread(fd, buf_reserve(to, 65536), 65536, (off_t)to->len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(e, "read the state");
        if (n == 0)
            return 0;
        buf_commit(to, (size_t)n);
        if (to->len > STATE_MAX)
            return err_set(e, EPROTO, "the engine's state is larger than it can be");
    }
}

int status_ask(const char *path, struct buf *to, struct err *e) {
    AUTO_FD sock = -1;
    if (listen_connect(path, &sock, e) < 0)
        return -1;
    AUTO_FREE struct wire_out *o = xcalloc(1, sizeof *o);
    wire_begin(o, WIRE_C_INFO);
    if (wire_send(sock, o, e) != WIRE_SENT)
        return err_user(e, "engine_gone", "the engine on %s went away", path);
    struct pollfd p = {.fd = sock, .events = POLLIN};
    if (poll(&p, 1, ANSWER_MS) <= 0)
        return err_user(e, "engine_gone", "the engine on %s does not answer", path);
    static struct wire_in in;
    struct c_state m;
    if (wire_recv(sock, &in, e) != WIRE_GOT || c_state_get(&in, &m, e) < 0)
        return err_user(e, "engine_gone", "the engine on %s went away", path);
    int r = read_state(m.json, to, e);
    wire_in_done(&in);
    return r;
}

static int status(const struct status_options *s, struct err *e) {
    AUTO_OPTIONS o = options_new();
    if ((s->socket && options_set_flag(o, "socket", s->socket, e) < 0) ||
        (s->config && options_set_flag(o, "config", s->config, e) < 0) || options_load(o, e) < 0)
        return -1;
    const char *path = options_text(o, "socket");
    AUTO_BUF json = BUF_INIT;
    json_auto_t *state = NULL;
    if (status_ask(path, &json, e) < 0 || json_read(json.data, json.len, 16, &state, e) < 0)
        return -1;
    if (s->json)
        puts(json.data);
    else
        state_print(state, path);
    return 0;
}

int verb_status(int argc, char **argv) {
    struct status_options s;
    struct err e;
    if (status_options_parse(argc, argv, &s, &e) < 0)
        return report(&e, s.json);
    if (s.help) {
        print_help();
        return 0;
    }
    if (s.server)
        return remote_exec(argv, s.json);
    return status(&s, &e) < 0 ? report(&e, s.json) : 0;
}
