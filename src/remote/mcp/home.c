/* See home.h. */

#include "remote/mcp/home.h"

#include "base/fd.h"
#include "base/id.h"
#include "base/json.h"
#include "base/log.h"
#include "base/url.h"
#include "remote/net/call.h"
#include "remote/net/limits_json.h"
#include "remote/net/server.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENV_FILE_MAX 65536
#define LEAVING_S    5 /* clients kill a process that takes its time */

/* ---- what it is made with ---- */

void home_network(const struct mcp_options *o, struct buf *to) {
    bool grants = o->network && strcmp(o->network, "none") != 0;
    if (grants)
        buf_adds(to, o->network);
    for (unsigned i = 0; i < o->allowed_domains.n; i++)
        buf_addf(to, "%s%s", to->len ? "," : "", o->allowed_domains.items[i]);
    if (!to->len && o->network)
        buf_adds(to, o->network);
}

static int set_variable(json_t *env, const char *line, size_t len, struct err *e) {
    const char *equals = memchr(line, '=', len);
    char quoted[80];
    if (!equals || equals == line)
        return err_user(e, "bad_value", "a line is %s; it must be NAME=VALUE",
                        log_quote(line, quoted, sizeof quoted));
    AUTO_FREE char *name = xstrndup(line, (size_t)(equals - line));
    size_t left = len - (size_t)(equals + 1 - line);
    json_t *value = json_stringn(equals + 1, left);
    if (!value || json_object_set_new(env, name, value) < 0)
        return err_user(e, "bad_value", "the variable %s is not UTF-8 text",
                        log_quote(name, quoted, sizeof quoted));
    return 0;
}

/* As of docker: NAME=VALUE lines; empty ones and those that begin with # say nothing. */
static int read_env_file(json_t *env, const char *path, struct err *e) {
    AUTO_FREE char *text = xmalloc(ENV_FILE_MAX);
    AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return err_user(e, errno == ENOENT ? "no_such_file" : "not_readable", "--env-file %s: %s",
                        path, strerror(errno));
    if (fd_read_all(fd, text, ENV_FILE_MAX, NULL, e) < 0)
        return err_wrap(e, "--env-file %s", path);
    for (char *line = text, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        line += strspn(line, " \t");
        size_t len = strcspn(line, "\r");
        line[len] = '\0';
        if (len && *line != '#' && set_variable(env, line, len, e) < 0)
            return err_wrap(e, "--env-file %s", path);
    }
    return 0;
}

static int add_env(json_t *to, const struct mcp_options *o, struct err *e) {
    json_t *env = json_object();
    json_object_set_new(to, "env", env);
    for (unsigned i = 0; i < o->env_files.n; i++)
        if (read_env_file(env, o->env_files.items[i], e) < 0)
            return -1;
    for (unsigned i = 0; i < o->env.n; i++)
        if (set_variable(env, o->env.items[i], strlen(o->env.items[i]), e) < 0)
            return -1;
    return 0;
}

/* HOST:PATH; PATH is below the sandbox's working directory, as ipybox has it. */
static int add_binds(json_t *to, const struct mcp_options *o, struct err *e) {
    json_t *all = json_array();
    json_object_set_new(to, "binds", all);
    for (unsigned i = 0; i < o->binds.n; i++) {
        const char *colon = strchr(o->binds.items[i], ':');
        char quoted[120];
        if (!colon || colon == o->binds.items[i] || !colon[1])
            return err_user(e, "bad_value", "--bind is %s; it must be HOST:PATH",
                            log_quote(o->binds.items[i], quoted, sizeof quoted));
        AUTO_FREE char *host = xstrndup(o->binds.items[i], (size_t)(colon - o->binds.items[i]));
        AUTO_FREE char *real = realpath(host, NULL);
        if (!real)
            return err_user(e, "no_such_file", "--bind %s: %s", host, strerror(errno));
        json_t *bind = json_object();
        json_array_append_new(all, bind);
        json_object_set_new(bind, "host", json_string(real));
        json_object_set_new(bind, "path", json_string(colon + 1));
        json_object_set_new(bind, "mode", json_string("rw"));
    }
    return 0;
}

/* In a header, because a URL is in every log. */
static int make_header(struct home *h, const struct mcp_options *o, struct err *e) {
    json_auto_t *with = json_object();
    if (!o->env.n && !o->env_files.n && !o->binds.n)
        return 0;
    if (add_env(with, o, e) < 0 || add_binds(with, o, e) < 0)
        return -1;
    AUTO_FREE char *text = json_dumps(with, JSON_COMPACT | JSON_ENSURE_ASCII);
    buf_addf(&h->header, "Cloche-Sandbox: %s", text ? text : "{}");
    return 0;
}

static void add_query(struct buf *to, const char *name, const char *value) {
    if (!value || !*value)
        return;
    buf_addf(to, "%c%s=", strchr(to->data, '?') ? '&' : '?', name);
    url_encode(to, value, ",:*@");
}

static void add_limits(struct buf *to, const struct limits *limits) {
    json_auto_t *asked = json_object();
    const char *name;
    json_t *value;
    limits_json(limits, LIMIT_OF_WHOLE, asked);
    json_object_foreach(asked, name, value) {
        AUTO_FREE char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
        add_query(to, name, text);
    }
}

static void add_path(struct buf *to, const struct mcp_options *o, const char *sandbox) {
    AUTO_BUF network = BUF_INIT;
    home_network(o, &network);
    buf_adds(to, "/mcp");
    add_query(to, "tools", o->tools);
    add_query(to, "sandbox", sandbox);
    add_query(to, "profile", o->profile);
    add_query(to, "network", network.data);
    add_limits(to, &o->limits);
}

void home_url(const struct mcp_options *o, const char *server, struct buf *to) {
    size_t len = strlen(server);
    while (len && server[len - 1] == '/')
        len--;
    buf_add(to, server, len);
    add_path(to, o, o->sandbox);
}

void home_file(const struct home *h, const char *path, struct buf *to) {
    buf_adds(to, "/mcp/files/");
    url_encode(to, path, "/");
    buf_adds(to, strchr(h->path.data, '?'));
}

int home_make(struct home *h, const struct mcp_options *o, struct err *e) {
    h->is_ours = !o->sandbox;
    if (o->sandbox)
        snprintf(h->name, sizeof h->name, "%s", o->sandbox);
    else
        id_make("stdio-", h->name, sizeof h->name);
    add_path(&h->path, o, h->name);
    return make_header(h, o, e);
}

/* ---- its end ---- */

/* Of the protocol before 2026-07-28: it asks for no headers. */
static const char delete_call[] =
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"sandbox\","
    "\"arguments\":{\"action\":\"delete\",\"name\":\"%s\"}}}";

void home_end(const struct home *h, struct remote *r) {
    AUTO_BUF body = BUF_INIT;
    AUTO_REPLY reply = REMOTE_REPLY_INIT;
    struct err ignored;
    if (!h->is_ours)
        return;
    r->signals = -1; /* a second one does not end this */
    buf_addf(&body, delete_call, h->name);
    const struct remote_call c = {.method = "POST",
                                  .path = "/mcp?tools=core",
                                  .json = &body,
                                  .upload = -1,
                                  .within_s = LEAVING_S};
    (void)remote_do(r, &c, &reply, &ignored);
}

void home_done(struct home *h) {
    buf_done(&h->path);
    buf_done(&h->header);
}
