/* See http_sockets.h. SECURITY: without keys, whoever reaches the port may run programs: so only
 * loopback addresses and unix sockets are listened on then, unless the operator says otherwise by
 * name. */

#include "supervisor/http_sockets.h"

#include "base/fd.h"
#include "base/log.h"
#include "base/num.h"
#include "base/safedir.h"
#include "base/service.h"
#include "config/paths.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 4096

/* A directory that the server may write in. */
static int open_dir(const char *path, mode_t mode, int *ret, struct err *e) {
    struct stat st;
    AUTO_FD fd = -1;
    if (paths_make_state_dir(path, &fd, e) < 0)
        return -1;
    if (fstat(fd, &st) < 0)
        return err_user(e, "output_failed", "%s: %s", path, strerror(errno));
    uid_t server = service_find().uid;
    if (geteuid() == 0 && st.st_uid != server &&
        (fchown(fd, server, (gid_t)-1) < 0 || fchmod(fd, mode) < 0))
        return err_user(e, "output_failed", "%s: %s", path, strerror(errno));
    *ret = fd_take(&fd);
    return 0;
}

/* The key file's directory; the configuration keeps its last name only. */
static int open_keys(struct config *c, int state, int *ret, bool *ret_there, struct err *e) {
    char *slash = strrchr(c->http.keys, '/');
    if (*c->http.keys == '\0') {
        free(c->http.keys);
        c->http.keys = xstrdup("keys.json");
        *ret = fcntl(state, F_DUPFD_CLOEXEC, 3);
    } else {
        AUTO_FREE char *path = NULL;
        if (paths_absolute(c->http.keys, &path, e) < 0)
            return -1;
        slash = strrchr(path, '/');
        *slash = '\0';
        *ret = open(*path ? path : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        free(c->http.keys);
        c->http.keys = xstrdup(slash + 1);
    }
    if (*ret < 0)
        return err_user(e, "bad_value", "the directory of the key file: %s", strerror(errno));
    *ret_there = faccessat(*ret, c->http.keys, F_OK, 0) == 0;
    return 0;
}

static bool is_loopback(const struct sockaddr *a) {
    if (a->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr) >> 24 == 127;
    return a->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr);
}

/* An address to listen on; `setting` is what says so. */
struct address {
    const char *host, *setting;
    uint32_t port;
};

static int bind_error(const struct address *at, struct err *e) {
    if (errno == EADDRINUSE)
        return err_user(e, "port_taken",
                        "port %u on %s is taken by another program; choose another with %s, or "
                        "--http off",
                        at->port, at->host, at->setting);
    return err_user(e, "no_listen", "cannot listen on %s port %u: %s", at->host, at->port,
                    strerror(errno));
}

static void say_where(struct http_sockets *s, int fd) {
    struct sockaddr_storage a = {0};
    socklen_t len = sizeof a;
    char host[64], port[16];
    if (getsockname(fd, (struct sockaddr *)&a, &len) == 0 &&
        getnameinfo((struct sockaddr *)&a, len, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) == 0)
        buf_addf(&s->where, a.ss_family == AF_INET6 ? "http://[%s]:%s\n" : "http://%s:%s\n", host,
                 port);
}

static int listen_tcp(const struct address *at, const struct addrinfo *a, struct http_sockets *s,
                      struct err *e) {
    const int one = 1;
    AUTO_FD fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return err_sys(e, "socket");
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one); /* connections inherit it */
    if (a->ai_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
    if (bind(fd, a->ai_addr, a->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0)
        return bind_error(at, e);
    say_where(s, fd);
    s->fds[s->n++] = fd_take(&fd);
    return 0;
}

/* Whether anybody may listen there: SECURITY, see above. */
static int check_open(const struct config *c, const struct address *at, const struct addrinfo *a,
                      bool keys, struct err *e) {
    if (keys || is_loopback(a->ai_addr) || strcmp(c->http.without_keys, "allow") == 0)
        return 0;
    return err_user(e, "no_keys",
                    "host %s is not loopback and there are no API keys: anybody who reaches it "
                    "could run programs",
                    at->host);
}

static int listen_host(const struct config *c, const struct address *at, bool keys,
                       struct http_sockets *s, struct err *e) {
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    char port[16];
    int rc = 0;
    snprintf(port, sizeof port, "%u", at->port);
    int bad = getaddrinfo(at->host, port, &hints, &found);
    if (bad)
        return err_user(e, "bad_value", "host is \"%.100s\": %s", at->host, gai_strerror(bad));
    unsigned most = HTTP_FD_DIRS_ + HTTP_MAX_LISTENERS - 1;
    for (const struct addrinfo *a = found; a && rc == 0; a = a->ai_next) {
        if (s->n == most)
            rc = err_user(e, "bad_value", "these are more than %d addresses to listen on",
                          HTTP_MAX_LISTENERS - 1);
        else if (check_open(c, at, a, keys, e) < 0 || listen_tcp(at, a, s, e) < 0)
            rc = -1;
        if (at->port == 0)
            break; /* two free ports would be two different ones */
    }
    freeaddrinfo(found);
    return rc;
}

/* "HOST:PORT", "[::1]:PORT" or "PORT", cut in place. */
static int read_address(const struct config *c, char *text, struct address *ret, struct err *e) {
    const struct num_rule rule = {"also_listen: the port", 0, 65535};
    char *colon = strrchr(text, ':'), *host = text;
    const char *port = colon ? colon + 1 : text;
    size_t len = colon ? (size_t)(colon - text) : 0;
    if (colon)
        *colon = '\0';
    if (len > 1 && text[0] == '[' && text[len - 1] == ']') {
        text[len - 1] = '\0';
        host++;
    }
    *ret = (struct address){len ? host : c->http.host, "--also-listen", 0};
    return num_u32(port, &rule, &ret->port, e);
}

static int listen_also(const struct config *c, bool keys, struct http_sockets *s, struct err *e) {
    AUTO_FREE char *list = xstrdup(c->http.also);
    for (char *at = list; *at;) {
        size_t len = strcspn(at, ",");
        char *next = at + len + (at[len] == ',');
        struct address a;
        at[len] = '\0';
        if (read_address(c, at, &a, e) < 0 || listen_host(c, &a, keys, s, e) < 0)
            return -1;
        at = next;
    }
    return 0;
}

static int listen_unix(const struct config *c, struct http_sockets *s, struct err *e) {
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    const char *path = c->http.unix_path;
    if (!*path)
        return 0;
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    AUTO_FREE char *parent = slash ? xstrndup(path, (size_t)(slash - path) + 1) : xstrdup(".");
    AUTO_FD dir = -1;
    if (strlen(path) >= sizeof a.sun_path)
        return err_user(e, "bad_value", "http_socket is longer than %zu bytes",
                        sizeof a.sun_path - 1);
    if (safedir_open(parent ? parent : ".", &dir, e) < 0)
        return -1;
    if ((size_t)snprintf(a.sun_path, sizeof a.sun_path, "/proc/self/fd/%d/%s", dir, name) >=
        sizeof a.sun_path)
        return err_user(e, "bad_value", "the socket's name %s is too long", name);
    AUTO_FD fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    AUTO_FD probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || probe < 0)
        return err_sys(e, "socket");
    if (connect(probe, (struct sockaddr *)&a, sizeof a) == 0)
        return err_user(e, "port_taken", "another server listens on %s", path);
    struct stat st;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISSOCK(st.st_mode))
        unlinkat(dir, name, 0); /* nobody is behind it */
    mode_t old = umask(0177);
    int r = bind(fd, (struct sockaddr *)&a, sizeof a);
    umask(old);
    if (r < 0 || listen(fd, BACKLOG) < 0)
        return err_user(e, "no_listen", "cannot listen on %s: %s", path, strerror(errno));
    buf_addf(&s->where, "unix:%s\n", path);
    s->fds[s->n++] = fd_take(&fd);
    return 0;
}

/* ---- lists of names: a word that no request can match is a mistake that nobody notices ---- */

static bool is_origin(const char *word) {
    const char *host = strstr(word, "://");
    return strcmp(word, "*") == 0 || strcmp(word, "null") == 0 ||
           (host && host > word && host[3] && !strchr(host + 3, '/') && !strpbrk(word, "?# "));
}

static bool is_host(const char *word) {
    size_t len = strlen(word);
    bool bracketed = len > 2 && word[0] == '[' && word[len - 1] == ']';
    return !strpbrk(word, "/?# ") && (bracketed || !strchr(word, ':'));
}

static int check_words(const char *setting, const char *words, bool (*is_good)(const char *word),
                       const char *form, struct err *e) {
    AUTO_FREE char *list = xstrdup(words);
    char quoted[120];
    for (char *rest = list, *word; (word = strsep(&rest, ","));) {
        if (*word && !is_good(word))
            return err_user(e, "bad_value", "%s has %s; each must be %s", setting,
                            log_quote(word, quoted, sizeof quoted), form);
    }
    return 0;
}

/* Below which hosts are made. */
static bool is_domain(const char *word) {
    const char *scheme = strstr(word, "://"), *name = scheme ? scheme + 3 : word;
    size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-");
    const char *port = name + len;
    return (!scheme || strncmp(word, "http://", 7) == 0 || strncmp(word, "https://", 8) == 0) &&
           len > 0 && name[0] != '.' && name[len - 1] != '.' &&
           (!*port ||
            (*port == ':' && port[1] && strspn(port + 1, "0123456789") == strlen(port + 1)));
}

static int check_names(const struct config *c, struct err *e) {
    char quoted[120];
    if (*c->http.ports_domain && !is_domain(c->http.ports_domain))
        return err_user(e, "bad_value",
                        "ports_domain is %s; it must be DOMAIN or DOMAIN:PORT, with https:// in "
                        "front where a proxy speaks that",
                        log_quote(c->http.ports_domain, quoted, sizeof quoted));
    if (check_words("cors_origin", c->http.cors_origins, is_origin,
                    "SCHEME://HOST or SCHEME://HOST:PORT, without a path, or *", e) < 0)
        return -1;
    return check_words("allow_host", c->http.hosts, is_host,
                       "a name or address alone, without scheme, port and path", e);
}

/* What the server writes there, nurseries mount by its path. SECURITY: so it is beside the state
 * directory, not in it: there the server could put something else in its place. */
static int open_trees(struct config *c, int state, int *ret, struct err *e) {
    AUTO_BUF dir = BUF_INIT;
    free(c->http.trees_dir);
    c->http.trees_dir = xstrdup("");
    if (c->http.tenant_profiles == 0) {
        *ret = fcntl(state, F_DUPFD_CLOEXEC, 3);
        return *ret < 0 ? err_sys(e, "duplicate a descriptor") : 0;
    }
    buf_adds(&dir, *c->http.tenants_dir ? c->http.tenants_dir : c->http.state_dir);
    while (dir.len > 1 && dir.data[dir.len - 1] == '/')
        dir.data[--dir.len] = '\0';
    if (!*c->http.tenants_dir)
        buf_adds(&dir, "-tenants");
    /* The users of sandboxes go through it, to the one tree that they are shown. */
    if (open_dir(dir.data, 0711, ret, e) < 0)
        return -1;
    if (fchmod(*ret, 0711) < 0)
        return err_user(e, "output_failed", "%s: %s", dir.data, strerror(errno));
    free(c->http.trees_dir);
    c->http.trees_dir = NULL;
    return paths_absolute(dir.data, &c->http.trees_dir, e);
}

static int open_dirs(struct config *c, struct http_sockets *s, bool *ret_keys, struct err *e) {
    AUTO_BUF files = BUF_INIT;
    buf_adds(&files, c->http.file_dir);
    if (files.len == 0)
        buf_addf(&files, "%s/files", c->http.state_dir);
    s->n = HTTP_FD_DIRS_;
    if (open_dir(c->http.state_dir, 0755, &s->fds[HTTP_FD_STATE], e) < 0 ||
        open_dir(files.data, 0700, &s->fds[HTTP_FD_FILES], e) < 0 ||
        open_trees(c, s->fds[HTTP_FD_STATE], &s->fds[HTTP_FD_TREES], e) < 0 ||
        open_dir(*c->http.audit_dir ? c->http.audit_dir : c->http.state_dir, 0755,
                 &s->fds[HTTP_FD_AUDIT], e) < 0)
        return -1;
    return open_keys(c, s->fds[HTTP_FD_STATE], &s->fds[HTTP_FD_KEYS], ret_keys, e);
}

int http_sockets_open(struct config *c, struct http_sockets *ret, struct err *e) {
    bool keys = false;
    *ret = (struct http_sockets){.where = BUF_INIT};
    memset(ret->fds, 0xff, sizeof ret->fds);
    c->http.header_s = c->http.idle_s < 30 ? c->http.idle_s : 30;
    if (strcmp(c->http.mode, "off") == 0)
        return 0;
    if (check_names(c, e) < 0 || open_dirs(c, ret, &keys, e) < 0)
        return -1;
    const struct address first = {c->http.host, "--port (or PORT)", c->http.port};
    if (!*first.host && !*c->http.unix_path)
        return err_user(e, "bad_value",
                        "host is empty and there is no http_socket: give one of them, or --http "
                        "off");
    if ((*first.host && listen_host(c, &first, keys, ret, e) < 0) ||
        listen_also(c, keys, ret, e) < 0 || listen_unix(c, ret, e) < 0)
        return -1;
    c->http.listeners = ret->n - HTTP_FD_DIRS_;
    return 0;
}

void http_sockets_done(struct http_sockets *s, const struct config *c) {
    if (c->http.listeners && c->http.unix_path && *c->http.unix_path)
        unlink(c->http.unix_path);
    fd_close_all(s->fds, sizeof s->fds / sizeof *s->fds);
    buf_done(&s->where);
}
