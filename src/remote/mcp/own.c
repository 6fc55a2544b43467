/* See own.h. */

#include "remote/mcp/own.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/num.h"
#include "cli/mcp.h"
#include "remote/mcp/home.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER_MAX 1024

void own_server_find(struct own_server *o) {
    static const struct num_rule rule = {MCP_OWN_VARIABLE, 3, 1000000};
    const char *text = getenv(MCP_OWN_VARIABLE);
    struct err ignored;
    uint32_t fd;
    o->fd = -1;
    if (text && num_u32(text, &rule, &fd, &ignored) == 0 &&
        fd_set_cloexec((int)fd, 1, &ignored) == 0)
        o->fd = (int)fd;
    unsetenv(MCP_OWN_VARIABLE);
}

static void add_word(struct buf *to, const char *flag, const char *value) {
    buf_addf(to, "--%s=%s", flag, value);
    buf_addc(to, '\0');
}

/* Whoever starts it is its operator: what the sandbox asks for is granted, and no more. */
static void add_limits(struct buf *to, const struct limits *l) {
    for (size_t i = 0; i < LIMITS_; i++) {
        const struct limit_info *info = &limits_info[i];
        char flag[64], value[32];
        uint64_t v = limits_value(l, i);
        if (!v || !(info->scope & LIMIT_OF_WHOLE))
            continue;
        if (info->type == LIMIT_CORES)
            snprintf(value, sizeof value, "%llu.%02llu", (unsigned long long)v / 100,
                     (unsigned long long)v % 100);
        else
            snprintf(value, sizeof value, "%llu", (unsigned long long)v);
        snprintf(flag, sizeof flag, "max-%s", info->name);
        add_word(to, flag, value);
        snprintf(flag, sizeof flag, "live-%s", info->name);
        add_word(to, flag, value);
    }
    for (char *at = to->data; at < to->data + to->len; at++)
        *at = (char)(*at == '_' ? '-' : *at);
}

static void add_settings(struct buf *to, const struct mcp_options *options) {
    add_limits(to, &options->limits);
    AUTO_BUF rules = BUF_INIT;
    AUTO_BUF binds = BUF_INIT;
    home_network(options, &rules);
    if (rules.len)
        add_word(to, "network", rules.data);
    for (unsigned i = 0; i < options->binds.n; i++) {
        const char *bind = options->binds.items[i];
        buf_addf(&binds, "%s%.*s:rw", i ? "," : "", (int)strcspn(bind, ":"), bind);
    }
    if (binds.len)
        add_word(to, "bind-allow", binds.data);
    if (options->profile && strcmp(options->profile, "auto") != 0)
        add_word(to, "profiles", options->profile); /* the others need not start */
    add_word(to, "log-level", "warn");
    add_word(to, "pool", "0");
}

static int hear(const struct own_server *o, char **ret_url, struct err *e) {
    char answer[ANSWER_MAX + 1];
    ssize_t n = recv(o->fd, answer, ANSWER_MAX, 0);
    if (n <= 0)
        return err_user(e, "engine_failed",
                        "the server that this process starts for itself has "
                        "gone");
    answer[n] = '\0';
    if (answer[0] == '!')
        return err_user(e, "engine_failed", "%s", answer + 1);
    *ret_url = xstrdup(answer);
    return 0;
}

int own_server_start(struct own_server *o, const struct mcp_options *options, int signals,
                     char **ret_url, struct err *e) {
    AUTO_BUF words = BUF_INIT;
    add_settings(&words, options);
    *ret_url = NULL;
    if (send(o->fd, words.data, words.len, MSG_NOSIGNAL) < 0)
        return err_sys(e, "start a server");
    for (;;) {
        struct pollfd p[] = {{.fd = o->fd, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
        if (poll(p, 2, -1) < 0)
            continue;
        if (p[1].revents)
            return 0;
        return hear(o, ret_url, e);
    }
}

void own_server_end(struct own_server *o) {
    char rest[64];
    if (o->fd < 0)
        return;
    shutdown(o->fd, SHUT_WR);
    for (ssize_t n; (n = recv(o->fd, rest, sizeof rest, 0)) > 0 || (n < 0 && errno == EINTR);)
        continue;
    fd_close(&o->fd);
}
