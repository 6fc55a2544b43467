/* Heads on their way to a server inside a sandbox and back. Each is written anew, from fields that
 * were read one by one: no byte goes through that says where a message ends.
 *
 * SECURITY: the server inside is hostile, and so may be the page that it sends. Inwards go no
 * credentials of ours: neither keys nor cookies that a browser has for our origin. Outwards goes
 * nothing that holds for more than the one reply: cookies, what a browser remembers of an origin,
 * who may read it. Without an origin of its own a page is sandboxed into none, so that it is not
 * ours either, whatever it does. The mark of an answer that comes from inside is not for those to
 * leave out who would like it to be taken for one of ours. */

#include "api/native/ports.h"

#include "api/core/sites.h"
#include "http/chars.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define SANDBOX                                                                                    \
    "sandbox allow-scripts allow-forms allow-modals allow-popups allow-downloads "                 \
    "allow-pointer-lock"

static bool is_among(const char *const *names, const char *name) {
    while (*names && strcasecmp(*names, name) != 0)
        names++;
    return *names != NULL;
}

/* Of one connection (RFC 9110, 7.6.1), besides those that Connection names. */
static const char *const of_connection[] = {"connection",
                                            "keep-alive",
                                            "proxy-connection",
                                            "proxy-authenticate",
                                            "te",
                                            "proxy-authorization",
                                            "trailer",
                                            "transfer-encoding",
                                            "proxy-authentication-info",
                                            "upgrade",
                                            "http2-settings",
                                            NULL};

/* ---- inwards ---- */

/* What we say ourselves, or nobody is to believe. */
static const char *const said_by_us[] = {"host",
                                         "content-length",
                                         "expect",
                                         "x-api-key",
                                         "forwarded",
                                         "x-forwarded-for",
                                         "x-forwarded-host",
                                         "x-forwarded-proto",
                                         "x-real-ip",
                                         "x-forwarded-port",
                                         "x-forwarded-prefix",
                                         "x-forwarded-server",
                                         NULL};

/* What a browser tells of our own origin. */
static const char *const of_our_origin[] = {"cookie", "origin", "referer", NULL};

struct head_writing {
    const struct call *call;
    const struct port_target *target;
    struct buf connection; /* what all headers of that name list */
    struct buf *to;
};

static bool is_own_origin(const struct port_target *t) {
    return !*t->prefix;
}

static void gather_connection(void *arg, const char *name, const char *value) {
    struct head_writing *w = arg;
    if (strcasecmp(name, "connection") == 0)
        buf_addf(&w->connection, "%s,", value);
}

/* A key of ours, as "Bearer KEY" or "token KEY", or what we took for one. */
static bool is_our_secret(const struct call *c, const char *value) {
    const char *secret = strchr(value, ' ');
    if (!secret || (strncasecmp(value, "bearer ", 7) != 0 && strncasecmp(value, "token ", 6) != 0))
        return false;
    secret += strspn(secret, " ");
    return keys_is_secret(secret) || keys_find(&c->api->keys, secret, strlen(secret)) != NULL;
}

/* But for ours. */
static void add_cookies(const char *value, struct buf *to) {
    const char *before = "Cookie: ";
    for (const char *at = value + strspn(value, "; \t"); *at; at += strspn(at, "; \t")) {
        size_t len = strcspn(at, ";");
        if (!site_is_our_cookie(at)) {
            buf_adds(to, before);
            buf_add(to, at, len);
            before = "; ";
        }
        at += len;
    }
    if (*before == ';')
        buf_adds(to, "\r\n");
}

static void add_request_field(void *arg, const char *name, const char *value) {
    struct head_writing *w = arg;
    if (is_among(of_connection, name) || is_among(said_by_us, name) ||
        char_lists(w->connection.data, name) ||
        (!is_own_origin(w->target) && is_among(of_our_origin, name)) ||
        (strcasecmp(name, "authorization") == 0 && is_our_secret(w->call, value)))
        return;
    if (strcasecmp(name, "cookie") == 0)
        add_cookies(value, w->to);
    else
        buf_addf(w->to, "%s: %s\r\n", name, value);
}

/* SECURITY: a key in the query is for us, wherever it came from, and so is a link. */
static void add_query(const struct call *c, struct buf *to) {
    const char *at = http_raw_query(c->req);
    char before = '?';
    while (at && *at) {
        size_t len = strcspn(at, "&"), name = strcspn(at, "=&");
        if (!site_is_link(at) && (at[name] != '=' || !keys_is_secret(at + name + 1))) {
            buf_addc(to, before);
            buf_add(to, at, len);
            before = '&';
        }
        at += len + (at[len] == '&');
    }
}

static void add_framing(const struct call *c, const char *upgrade, struct buf *to) {
    const char *length = http_header(c->req, "Content-Length");
    if (http_header(c->req, "Transfer-Encoding"))
        buf_adds(to, "Transfer-Encoding: chunked\r\n");
    else if (length)
        buf_addf(to, "Content-Length: %s\r\n", length);
    if (upgrade)
        buf_addf(to, "Connection: Upgrade\r\nUpgrade: %s\r\n\r\n", upgrade);
    else
        buf_adds(to, "Connection: close\r\n\r\n");
}

void port_head_request(const struct call *c, const struct port_target *t, const char *upgrade,
                       struct buf *to) {
    struct head_writing w = {.call = c, .target = t, .connection = BUF_INIT, .to = to};
    const char *host = http_header(c->req, "Host");
    buf_addf(to, "%s %s", http_method(c->req), t->path);
    add_query(c, to);
    if (is_own_origin(t))
        buf_addf(to, " HTTP/1.1\r\nHost: %s\r\nX-Forwarded-Proto: %s\r\n", host,
                 site_is_secure(c->api) ? "https" : "http");
    else
        buf_addf(to, " HTTP/1.1\r\nHost: localhost:%u\r\nX-Forwarded-Prefix: %s\r\n", t->port,
                 t->prefix);
    if (host)
        buf_addf(to, "X-Forwarded-Host: %s\r\n", host);
    http_each_header(c->req, gather_connection, &w);
    http_each_header(c->req, add_request_field, &w);
    add_framing(c, upgrade, to);
    buf_done(&w.connection);
}

const char *port_head_upgrade(const struct call *c) {
    const char *to = http_header(c->req, "Upgrade");
    size_t n = 0;
    while (to && (char_is_token(to[n]) || to[n] == '/'))
        n++;
    bool is_one = n > 0 && to[n] == '\0' && !http_has_body(c->req);
    return is_one && char_lists(http_header(c->req, "Connection"), "upgrade") ? to : NULL;
}

/* ---- outwards ---- */

/* What a browser keeps for an origin or a whole site, or what we say ourselves. */
static const char *const never[] = {"alt-svc",
                                    "alt-used",
                                    "clear-site-data",
                                    "content-length",
                                    "date",
                                    "expect-ct",
                                    "nel",
                                    "origin-agent-cluster",
                                    "public-key-pins",
                                    "public-key-pins-report-only",
                                    "report-to",
                                    "reporting-endpoints",
                                    "service-worker-allowed",
                                    "set-login",
                                    "strict-transport-security",
                                    "use-as-dictionary",
                                    "x-cloche-port",
                                    "x-request-id",
                                    "accept-ch",
                                    "critical-ch",
                                    "activate-storage-access",
                                    "idp-signin-status",
                                    "sec-session-registration",
                                    "sec-session-challenge",
                                    "secure-session-registration",
                                    "secure-session-challenge",
                                    "shared-storage-write",
                                    NULL};

/* What it keeps, asks or lets others read where the page is none of an origin of its own. */
static const char *const not_for_ours[] = {"set-cookie",
                                           "set-cookie2",
                                           "www-authenticate",
                                           "authentication-info",
                                           "timing-allow-origin",
                                           "access-control-allow-origin",
                                           "access-control-allow-credentials",
                                           "access-control-allow-headers",
                                           "access-control-allow-methods",
                                           "access-control-allow-private-network",
                                           "access-control-expose-headers",
                                           "access-control-max-age",
                                           "x-content-type-options",
                                           NULL};

/* The path in a Location that means the server itself; NULL: it leads elsewhere, or is relative. */
static const char *own_path(const struct port_target *t, const char *to) {
    char origin[40];
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
    if (to[0] == '/')
        return to[1] == '/' || to[1] == '\\' ? NULL : to;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        int len = snprintf(origin, sizeof origin, "http://%s:%u", names[i], t->port);
        if (strncasecmp(to, origin, (size_t)len) == 0 && to[len] == '/')
            return to + len;
    }
    return NULL;
}

static void add_location(struct call *c, const struct port_target *t, const char *to) {
    const char *path = is_own_origin(t) ? NULL : own_path(t, to);
    AUTO_BUF location = BUF_INIT;
    buf_addf(&location, "%s%s", path ? t->prefix : "", path ? path : to);
    http_add_header(c->req, "Location", location.data);
}

/* SECURITY: a cookie for the whole domain would reach the servers of others. */
static bool is_own_cookie(const char *value) {
    if (site_is_our_cookie(value))
        return false;
    for (const char *at = strchr(value, ';'); at; at = strchr(at, ';')) {
        at += strspn(at, "; \t");
        if (strncasecmp(at, "domain", 6) == 0)
            return false;
    }
    return true;
}

static bool goes_out(const struct port_target *t, const struct answer *a, const char *name) {
    return !is_among(of_connection, name) && !answer_lists(a, "connection", name) &&
           !is_among(never, name) && (is_own_origin(t) || !is_among(not_for_ours, name));
}

void port_head_reply(struct call *c, const struct port_target *t, const struct answer *a) {
    char port[8];
    snprintf(port, sizeof port, "%u", t->port);
    if (!is_own_origin(t)) {
        http_add_header(c->req, "Content-Security-Policy", SANDBOX);
        http_add_header(c->req, "X-Content-Type-Options", "nosniff");
        http_add_header(c->req, "X-Cloche-Port", port);
    }
    for (unsigned i = 0; i < a->nfields; i++) {
        const struct answer_field *f = &a->fields[i];
        if (!goes_out(t, a, f->name) ||
            (strcasecmp(f->name, "set-cookie") == 0 && !is_own_cookie(f->value)))
            continue;
        if (strcasecmp(f->name, "location") == 0)
            add_location(c, t, f->value);
        else
            http_add_header(c->req, f->name, f->value);
    }
    if (a->state == ANSWER_SWITCHED)
        http_add_header(c->req, "Upgrade", answer_field(a, "upgrade"));
}
