/* See server.h. */

#include "remote/net/server.h"

#include "base/fd.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>

#define CONNECT_S 15
#define KEY_MAX   512

int remote_bad_url(const char *url, const char *why, struct err *e) {
    char quoted[200];
    return err_user(e, "bad_value",
                    "the server's URL is %s: %s; it must be http://HOST:PORT, https://HOST or "
                    "unix:PATH",
                    log_quote(url, quoted, sizeof quoted), why);
}

static bool is_local_name(const char *host, size_t len) {
    static const char *const names[] = {"localhost", "[::1]"};
    for (size_t i = 0; i < 2; i++)
        if (len == strlen(names[i]) && strncasecmp(host, names[i], len) == 0)
            return true;
    return len > 4 && strncmp(host, "127.", 4) == 0;
}

static int set_unix(struct remote *r, const char *url, struct err *e) {
    const char *path = url + strlen("unix:");
    if (strncmp(path, "//", 2) == 0)
        path += 2;
    if (*path == '\0')
        return remote_bad_url(url, "it names no path", e);
    if (strlen(path) >= sizeof((struct sockaddr_un *)0)->sun_path)
        return remote_bad_url(url, "the path is too long for a socket", e);
    r->unix_path = xstrdup(path);
    r->base = xstrdup("http://localhost");
    r->is_local = true;
    return 0;
}

static int set_url(struct remote *r, const char *url, struct err *e) {
    r->shown = xstrdup(url);
    if (strncasecmp(url, "unix:", 5) == 0)
        return set_unix(r, url, e);
    size_t scheme = strncasecmp(url, "http://", 7) == 0    ? 7
                    : strncasecmp(url, "https://", 8) == 0 ? 8
                                                           : 0;
    if (!scheme)
        return remote_bad_url(url, "the scheme is missing or another one", e);
    size_t host = strcspn(url + scheme, "/?#");
    if (memchr(url + scheme, '@', host))
        return remote_bad_url(url, "a name and password have no place in it (see --key-file)", e);
    if (strpbrk(url, "?# \t\r\n") || host == 0)
        return remote_bad_url(
            url, host ? "it has more than a path behind the host" : "it has no host", e);
    size_t len = strlen(url);
    while (len > scheme && url[len - 1] == '/')
        len--;
    r->base = xstrndup(url, len);
    const char *name = url + scheme;
    r->is_local = is_local_name(name, *name == '[' ? strcspn(name, "]") + 1 : strcspn(name, ":/"));
    return r->base ? 0 : err_set(e, ENOMEM, "out of memory");
}

/* SECURITY: a key on the command line would be in every list of processes. */
static int read_key_file(const char *file, char *key, struct err *e) {
    const char *env = getenv("CLOCHE_API_KEY");
    AUTO_FD fd = -1;
    if (!file) {
        snprintf(key, KEY_MAX, "%s", env ? env : "");
        return 0;
    }
    fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return err_user(e, errno == ENOENT ? "no_such_file" : "not_readable", "--key-file %s: %s",
                        file, strerror(errno));
    if (fd_read_all(fd, key, KEY_MAX, NULL, e) < 0)
        return err_user(e, "bad_value", "--key-file %s: %s", file,
                        e->code == EFBIG ? "it is longer than any key" : e->text);
    key[strcspn(key, "\r\n")] = '\0';
    return *key ? 0 : err_user(e, "bad_value", "--key-file %s: its first line is empty", file);
}

static int set_key(struct remote *r, const char *file, struct err *e) {
    char key[KEY_MAX];
    if (read_key_file(file, key, e) < 0)
        return -1;
    for (const char *p = key; *p; p++)
        if (*p <= ' ' || *p > '~')
            return err_user(e, "bad_value", "%s holds no key: it has blanks or other characters",
                            file ? file : "CLOCHE_API_KEY");
    if (!*key)
        return 0;
    struct buf b = BUF_INIT;
    buf_addf(&b, "Authorization: Bearer %s", key);
    r->key = buf_take(&b);
    explicit_bzero(key, sizeof key);
    return 0;
}

int remote_open(const char *url, const char *key_file, int signals, struct remote **ret,
                struct err *e) {
    AUTO_REMOTE r = xcalloc(1, sizeof *r);
    r->signals = signals;
    if (set_url(r, url, e) < 0 || set_key(r, key_file, e) < 0)
        return -1;
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK || !(r->multi = curl_multi_init()))
        return err_set(e, ENOMEM, "libcurl does not start");
    *ret = r;
    r = NULL;
    return 0;
}

void remote_free(struct remote *r) {
    if (!r)
        return;
    if (r->multi)
        curl_multi_cleanup(r->multi);
    free(r->base);
    free(r->unix_path);
    free(r->shown);
    free(r->key);
    free(r);
}

void remote_prepare(const struct remote *r, CURL *h) {
    curl_easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(h, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_S);
    curl_easy_setopt(h, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(h, CURLOPT_USERAGENT, "cloche/" CLOCHE_VERSION);
    const char *trusted = getenv("SSL_CERT_FILE"); /* libcurl itself looks only at what it was
                                                      built with */
    if (trusted && *trusted)
        curl_easy_setopt(h, CURLOPT_CAINFO, trusted);
    if (r->is_local)
        curl_easy_setopt(h, CURLOPT_PROXY, "");
    if (r->unix_path)
        curl_easy_setopt(h, CURLOPT_UNIX_SOCKET_PATH, r->unix_path);
}

int remote_failed(const struct remote *r, CURLcode code, const char *why, struct err *e) {
    const char *where = r->shown;
    if (!*why)
        why = curl_easy_strerror(code);
    switch ((int)code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_PROXY:
        return err_user(e, "no_server", "no server answers at %s: %s", where, why);
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
        return err_user(e, "bad_certificate", "%s is not who it says: %s", where, why);
    case CURLE_URL_MALFORMAT:
        return remote_bad_url(where, why, e);
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_UNSUPPORTED_PROTOCOL:
        return err_user(e, "bad_reply", "what answers at %s is no cloche server: %s", where, why);
    default:
        return err_user(e, "engine_gone", "the server at %s went away: %s", where, why);
    }
}
