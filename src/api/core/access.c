/* See access.h.
 *
 * Without a file of keys the server is for the machine it runs on: it listens on loopback or a unix
 * socket, and everybody there is the one tenant. A web page that a developer visits must not be
 * able to use it through their browser: so the name that was asked for (Host) must be a loopback
 * one or listed by the operator, which defeats DNS names that are pointed at 127.0.0.1, and a
 * request that says it comes from another site's page (Origin) is refused unless that site is
 * listed.
 *
 * An operator who opens the server to a network without keys (--without-keys allow) cannot list the
 * names it will be asked for: any Host is good then. A browser that was led here by such a name
 * says so in the Origin of all that changes anything, and there names must still be listed; an
 * address cannot be pointed elsewhere. */

#include "api/core/access.h"

#include "api/core/sites.h"
#include "base/log.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define NO_TENANT "default"

/* The words of a comma separated list. */
static bool listed(const char *list, const char *word, size_t len) {
    for (const char *at = list; *at;) {
        size_t n = strcspn(at, ",");
        if ((n == 1 && *at == '*') || (n == len && strncasecmp(at, word, len) == 0))
            return true;
        at += n + (at[n] == ',');
    }
    return false;
}

/* The host of "host" or "host:port" without the port; the brackets of an IPv6 address stay. 0: it
 * is none. SECURITY: all of it is read, since what stands behind a good beginning
 * ("[::1].page.org", "localhost:80.page.org") makes another host of it. */
static size_t host_len(const char *host) {
    static const char digits[] = "0123456789", letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                                           "abcdefghijklmnopqrstuvwxyz"
                                                           "0123456789.-_";
    size_t len =
        host[0] == '[' ? strspn(host + 1, "0123456789abcdefABCDEF:.") + 1 : strspn(host, letters);
    if (host[0] == '[' && host[len++] != ']')
        return 0;
    const char *rest = host + len;
    size_t port = *rest == ':' ? strspn(rest + 1, digits) : 0;
    return rest[port + (*rest == ':')] == '\0' && port <= 5 ? len : 0;
}

/* An IPv4 address in its usual form, or an IPv6 one in brackets. */
static bool is_address(const char *host, size_t len, struct in6_addr *ret) {
    char text[INET6_ADDRSTRLEN];
    struct in_addr v4;
    bool bracketed = len > 2 && host[0] == '[';
    size_t n = bracketed ? len - 2 : len;
    if (n >= sizeof text)
        return false;
    memcpy(text, host + bracketed, n);
    text[n] = '\0';
    if (bracketed)
        return inet_pton(AF_INET6, text, ret) == 1;
    *ret = (struct in6_addr){.s6_addr = {[10] = 0xff, [11] = 0xff}};
    if (inet_pton(AF_INET, text, &v4) != 1)
        return false;
    memcpy(&ret->s6_addr[12], &v4, sizeof v4);
    return true;
}

static bool is_loopback(const char *host, size_t len) {
    static const char suffix[] = ".localhost";
    const size_t n = sizeof suffix - 1;
    struct in6_addr a;
    if (is_address(host, len, &a))
        return IN6_IS_ADDR_LOOPBACK(&a) || (IN6_IS_ADDR_V4MAPPED(&a) && a.s6_addr[12] == 127);
    return (len == n - 1 && strncasecmp(host, suffix + 1, len) == 0) ||
           (len > n && strncasecmp(host + len - n, suffix, n) == 0);
}

/* SECURITY: a name that anybody may have pointed at us is no proof of anything. */
static bool is_name_of_ours(const struct call *c, const char *host) {
    size_t len = host_len(host);
    return http_is_unix(c->req) || c->api->has_keys || is_loopback(host, len) ||
           listed(c->api->config->http.hosts, host, len);
}

static bool any_host(const struct call *c) {
    return strcmp(c->api->config->http.without_keys, "allow") == 0;
}

/* The host of an origin "scheme://host:port". */
static bool is_own_origin(const struct call *c, const char *origin) {
    const char *host = strstr(origin, "://"), *own = http_header(c->req, "Host");
    struct in6_addr ignored;
    return host && own && strcasecmp(host + 3, own) == 0 &&
           (is_name_of_ours(c, own) || is_address(own, host_len(own), &ignored));
}

static void allow_origin(struct call *c, const char *origin) {
    http_add_header(c->req, "Access-Control-Allow-Origin", origin);
    http_add_header(c->req, "Vary", "Origin");
    http_add_header(c->req, "Access-Control-Expose-Headers",
                    "X-Request-Id, X-Execution-Id, Content-Disposition, Content-Range, "
                    "Retry-After, ETag, Idempotent-Replayed, X-Cloche-Port, Mcp-Session-Id");
}

bool access_check_origin(struct call *c, struct problem *ret) {
    if (site_find(c))
        return true; /* site_check_key looks at its origin */
    const struct config *cfg = c->api->config;
    const char *host = http_header(c->req, "Host"), *origin = http_header(c->req, "Origin");
    if (host && !is_name_of_ours(c, host) && !any_host(c)) {
        problem_set(ret, "bad_host", "this server answers to loopback names only");
        return false;
    }
    if (!origin || is_own_origin(c, origin))
        return true;
    if (listed(cfg->http.cors_origins, origin, strlen(origin))) {
        allow_origin(c, origin);
        return true;
    }
    problem_set(ret, "bad_origin", "pages of other sites may not use this server");
    return false;
}

bool access_preflight(struct call *c) {
    if (c->site.is || strcmp(http_method(c->req), "OPTIONS") != 0 ||
        !http_header(c->req, "Origin") || !http_header(c->req, "Access-Control-Request-Method"))
        return false;
    http_add_header(c->req, "Access-Control-Allow-Methods", "GET, POST, PUT, PATCH, DELETE, HEAD");
    http_add_header(c->req, "Access-Control-Allow-Headers",
                    "Authorization, Content-Type, X-API-Key, Idempotency-Key, traceparent, "
                    "Last-Event-ID, Range, If-Range, If-None-Match, MCP-Protocol-Version, "
                    "Mcp-Session-Id, Mcp-Method, Mcp-Name");
    http_add_header(c->req, "Access-Control-Max-Age", "600");
    http_reply(c->req, 204, NULL, "", 0);
    return true;
}

/* Clients of some dialects write "token" for "Bearer", or put the key into the query where they can
 * set no header. */
static const char *secret_of(const struct call *c) {
    const char *h = http_header(c->req, "Authorization"), *key = http_header(c->req, "X-API-Key");
    if (key && c->route->doc.passes)
        return key; /* the other one is for whom the request goes to */
    if (h && strncasecmp(h, "Bearer ", 7) == 0)
        return h + 7 + strspn(h + 7, " ");
    if (h && strncasecmp(h, "token ", 6) == 0)
        return h + 6 + strspn(h + 6, " ");
    if (key || !c->dialect || !c->dialect->secret)
        return key;
    return http_query(c->req, c->dialect->secret);
}

bool access_check_key(struct call *c, struct problem *ret) {
    struct api *a = c->api;
    snprintf(c->who.tenant, sizeof c->who.tenant, "%s", NO_TENANT);
    const char *secret = secret_of(c);
    if (c->site.is && !(secret && keys_is_secret(secret)))
        return site_check_key(c, ret);
    if (!a->has_keys)
        c->who.rights = KEY_RIGHTS_ALL;
    if (!a->has_keys || c->route->is_open)
        return true;
    const struct key *key = secret ? keys_find(&a->keys, secret, strlen(secret)) : NULL;
    if (!key) {
        problem_set(ret, secret ? "bad_key" : "no_key",
                    secret ? "this key is not known" : "this server wants an API key");
        return false;
    }
    caller_is(&c->who, key);
    return true;
}

void access_log(const struct call *c, double seconds) {
    char path[200], trace[80];
    const char *parent = http_header(c->req, "traceparent");
    log_info("request id=%s method=%s path=%s status=%d ms=%.1f in=%llu out=%llu key=%s%s%s",
             c->who.request, http_method(c->req), log_quote(http_path(c->req), path, sizeof path),
             http_status(c->req), seconds * 1e3, (unsigned long long)http_bytes_in(c->req),
             (unsigned long long)http_bytes_out(c->req), c->who.key[0] ? c->who.key : "-",
             parent ? " traceparent=" : "", parent ? log_quote(parent, trace, sizeof trace) : "");
}
