/* An MCP server for the conformance suite: the protocol of src/mcp and src/http, and the suite's
 * own fixtures in the registry. `mcp_fixture PORT` serves http://127.0.0.1:PORT/mcp until it is
 * killed, and says on stdout when it does; port 0 is any free one. */

#include "fixture.h"

#include "base/buf.h"
#include "base/num.h"
#include "http/http.h"
#include "loop/crew.h"
#include "mcp/server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

struct loop *fixture_loop;
struct mcp *fixture_server;

/* Only names of this machine, as the suite wants it of servers on loopback. */
static bool is_local(const char *host) {
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t n = strlen(names[i]);
        if (strncmp(host, names[i], n) == 0 && (host[n] == '\0' || host[n] == ':'))
            return true;
    }
    return false;
}

static bool may_ask(struct http_req *r) {
    const char *host = http_header(r, "Host"), *origin = http_header(r, "Origin");
    const char *of = origin ? strstr(origin, "://") : NULL;
    return host && is_local(host) && (!origin || (of && is_local(of + 3)));
}

static void asker_free(struct mcp_asker *who) {
    free(who);
}

static void fixture_on_request(void *arg, struct http_req *r) {
    (void)arg;
    if (strcmp(http_path(r), "/mcp") != 0 || !may_ask(r)) {
        http_reply(r, may_ask(r) ? 404 : 403, NULL, "", 0);
        return;
    }
    struct mcp_asker *who = xcalloc(1, sizeof *who);
    snprintf(who->owner, sizeof who->owner, "anybody");
    who->free = asker_free;
    mcp_serve(fixture_server, r, who);
}

static void fixture_on_finished(void *arg, struct http_req *r) {
    (void)arg;
    mcp_request_over(r);
}

static int listen_at(uint32_t port, uint16_t *ret_port) {
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 ||
        bind(fd, (struct sockaddr *)&at, sizeof at) < 0 || listen(fd, 64) < 0 ||
        getsockname(fd, (struct sockaddr *)&at, &len) < 0)
        return -1;
    *ret_port = ntohs(at.sin_port);
    return fd;
}

static int serve(uint32_t port, struct err *e) {
    struct mcp_host host = {.name = "mcp-fixture",
                            .title = "The fixtures of the conformance suite",
                            .version = "1",
                            .offers = &fixture_registry,
                            .changes = true,
                            .watches = true,
                            .logs = true,
                            .secret = "a secret that everybody knows"};
    struct http_options o = {.on_request = fixture_on_request,
                             .on_finished = fixture_on_finished,
                             .max_connections = 200,
                             .header_s = 10,
                             .idle_s = 60,
                             .body_step_s = 10,
                             .bodies_max = 64u << 20};
    struct http *http;
    uint16_t bound;
    if (loop_new(&fixture_loop, e) < 0 || crew_new(fixture_loop, 2, &host.crew, e) < 0)
        return -1;
    host.loop = o.loop = fixture_loop;
    fixture_server = mcp_new(&host);
    int fd = listen_at(port, &bound);
    if (fd < 0)
        return err_sys(e, "listen");
    if (http_new(&o, &http, e) < 0 || http_listen(http, &fd, NULL, e) < 0)
        return -1;
    printf("http://127.0.0.1:%u/mcp\n", bound);
    fflush(stdout);
    return loop_run(fixture_loop, e);
}

int main(int argc, char **argv) {
    const struct num_rule rule = {"PORT", 0, 65535};
    uint32_t port = 0;
    struct err e = {0};
    if (argc > 2 || (argc == 2 && num_u32(argv[1], &rule, &port, &e) < 0) || serve(port, &e) < 0) {
        fprintf(stderr, "usage: mcp_fixture [PORT]: %s\n", e.text);
        return 1;
    }
    return 0;
}
