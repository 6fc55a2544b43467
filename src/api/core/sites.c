/* See sites.h. The host of a server at port 8000 of the sandbox sbx_523ed… is 8000-sbx523ed….DOMAIN
 * (no host name has an underscore). A browser treats it as a site's origin: the page there can do
 * what pages can, to itself.
 *
 * SECURITY: browsers send cookies with whatever a page asks for, and all hosts of the domain are
 * one site to them: SameSite does not keep one sandbox's page from another's server. So whoever is
 * let in by a cookie, or by being on this machine where there are no keys, has to come from a page
 * of that very origin, or by a link that a person follows. What a cookie proves is of one sandbox
 * and port, so those that other hosts of the domain set prove nothing here. */

#include "api/core/sites.h"

#include "api/core/doors.h"
#include "base/id.h"
#include "base/num.h"
#include "keys/links.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define ID_PREFIX "sbx"
#define SECURE    "__Host-" SITE_COOKIE

/* ---- names ---- */

bool site_is_secure(const struct api *a) {
    return strncmp(a->config->http.ports_domain, "https://", 8) == 0;
}

/* "[SCHEME://]DOMAIN[:PORT]": from the domain on, its length without the port. */
static const char *domain_of(const struct api *a, size_t *ret_len) {
    const char *domain = a->config->http.ports_domain, *scheme = strstr(domain, "://");
    if (scheme)
        domain = scheme + 3;
    *ret_len = strcspn(domain, ":");
    return domain;
}

/* "8000-sbx523ed…" */
static bool read_label(struct call *c, const char *label, size_t len) {
    const struct num_rule rule = {"port", 1, 65535};
    const char *dash = memchr(label, '-', len);
    char word[8];
    uint32_t port;
    struct err e;
    size_t digits = dash ? (size_t)(dash - label) : 0, rest = len - digits;
    if (digits == 0 || digits >= sizeof word || rest != 1 + 3 + ID_DIGITS ||
        strncasecmp(dash + 1, ID_PREFIX, 3) != 0)
        return false;
    memcpy(word, label, digits);
    word[digits] = '\0';
    if (num_u32(word, &rule, &port, &e) < 0)
        return false;
    c->site.port = (uint16_t)port;
    snprintf(c->site.id, sizeof c->site.id, ID_PREFIX "_%.*s", ID_DIGITS, dash + 4);
    for (char *at = c->site.id; *at; at++)
        *at = (char)tolower((unsigned char)*at);
    return true;
}

bool site_find(struct call *c) {
    size_t domain_len;
    const char *domain = domain_of(c->api, &domain_len), *host = http_header(c->req, "Host");
    size_t len = host ? strcspn(host, ":") : 0;
    if (!domain_len || len <= domain_len || call_at_door(c))
        return false;
    size_t label = len - domain_len - 1;
    c->site.is = host[label] == '.' && strncasecmp(host + label + 1, domain, domain_len) == 0 &&
                 strspn(host + len, ":0123456789") == strlen(host + len) &&
                 read_label(c, host, label);
    return c->site.is;
}

/* Where the operator names no port, it is the one that this request came to. */
void site_url(const struct call *c, const char *id, uint16_t port, struct buf *to) {
    size_t len;
    const char *domain = domain_of(c->api, &len), *host = http_header(c->req, "Host");
    bool secure = site_is_secure(c->api);
    const char *own = domain[len] || secure ? domain + len : host ? strrchr(host, ':') : NULL;
    bool is_port = own && strspn(own, ":0123456789") == strlen(own);
    buf_addf(to, "%s://%u-" ID_PREFIX "%s.%.*s%s", secure ? "https" : "http", port, id + 4,
             (int)len, domain, is_port ? own : "");
}

/* ---- who asks ---- */

static bool is_word(const struct call *c, const char *header, const char *word) {
    const char *value = http_header(c->req, header);
    return value && strcmp(value, word) == 0;
}

static bool is_reading(const struct call *c) {
    return strcmp(http_method(c->req), "GET") == 0 || strcmp(http_method(c->req), "HEAD") == 0;
}

/* See the top. Who sends none of these headers is no browser, or one that sends no cookies where
 * that matters. */
static bool is_own_page(const struct call *c) {
    const char *origin = http_header(c->req, "Origin"), *host = http_header(c->req, "Host");
    const char *name = origin ? strstr(origin, "://") : NULL;
    if (origin && (!name || strcasecmp(name + 3, host) != 0))
        return false;
    if (origin && site_is_secure(c->api) && strncmp(origin, "https:", 6) != 0)
        return false; /* of the same name, from whoever is between the browser and us */
    if (!http_header(c->req, "Sec-Fetch-Site") || is_word(c, "Sec-Fetch-Site", "same-origin") ||
        is_word(c, "Sec-Fetch-Site", "none"))
        return true;
    return is_reading(c) && is_word(c, "Sec-Fetch-Mode", "navigate") &&
           is_word(c, "Sec-Fetch-Dest", "document");
}

static const struct key *key_of(const struct api *a, const char *id) {
    unsigned i = 0;
    while (i < a->keys.n && strcmp(a->keys.items[i].id, id) != 0)
        i++;
    return i < a->keys.n ? &a->keys.items[i] : NULL;
}

/* SECURITY: a link is worth what the key is that made it: nothing when that is gone. */
static bool takes_link(struct call *c, const char *text, size_t len) {
    struct link_claim claim = {.sandbox = c->site.id, .port = c->site.port};
    time_t now = time(NULL);
    if (!link_read(&c->api->links, text, len, &claim) || claim.expires <= (uint64_t)now)
        return false;
    const struct key *key = claim.key[0] ? key_of(c->api, claim.key) : NULL;
    if (c->api->has_keys != (key != NULL))
        return false;
    c->site.left_s = claim.expires - (uint64_t)now;
    if (key)
        caller_is(&c->who, key);
    return true;
}

bool site_is_link(const char *param) {
    return strncmp(param, SITE_PARAM "=", sizeof SITE_PARAM) == 0;
}

bool site_is_our_cookie(const char *cookie) {
    size_t n = strcspn(cookie, "= ;");
    return (n == sizeof SITE_COOKIE - 1 && strncmp(cookie, SITE_COOKIE, n) == 0) ||
           (n == sizeof SECURE - 1 && strncmp(cookie, SECURE, n) == 0);
}

struct cookie_search {
    struct call *call;
    bool found;
};

static void look_for_cookie(void *arg, const char *name, const char *value) {
    struct cookie_search *s = arg;
    if (strcasecmp(name, "cookie") != 0)
        return;
    for (const char *at = value + strspn(value, "; \t"); *at && !s->found;
         at += strspn(at, "; \t")) {
        size_t len = strcspn(at, ";"), is = strcspn(at, "=;");
        if (is < len && site_is_our_cookie(at))
            s->found = takes_link(s->call, at + is + 1, len - is - 1);
        at += len;
    }
}

static bool site_refuse(struct problem *ret, const char *code, const char *text) {
    problem_set(ret, code, "%s", text);
    return false;
}

bool site_check_key(struct call *c, struct problem *ret) {
    const char *link = http_query(c->req, SITE_PARAM);
    struct cookie_search s = {.call = c};
    if (!is_own_page(c))
        return site_refuse(ret, "bad_origin", "pages of other sites may not use this server");
    if (link && is_reading(c)) {
        c->site.opens = takes_link(c, link, strlen(link));
        return c->site.opens ||
               site_refuse(ret, "bad_link", "this link is over, or not one to this server");
    }
    http_each_header(c->req, look_for_cookie, &s);
    return s.found || !c->api->has_keys ||
           site_refuse(ret, "no_key", "this server wants an API key, or a link");
}

/* ---- links that are opened ---- */

/* The whole URL: a path that begins with two slashes alone would lead elsewhere. */
static void add_location(struct call *c) {
    const char *at = http_raw_query(c->req);
    AUTO_BUF to = BUF_INIT;
    char before = '?';
    buf_addf(&to, "%s://%s%s", site_is_secure(c->api) ? "https" : "http",
             http_header(c->req, "Host"), http_raw_path(c->req));
    while (at && *at) {
        size_t len = strcspn(at, "&");
        if (!site_is_link(at)) {
            buf_addc(&to, before);
            buf_add(&to, at, len);
            before = '&';
        }
        at += len + (at[len] == '&');
    }
    http_add_header(c->req, "Location", to.data);
}

void site_open(struct call *c) {
    bool secure = site_is_secure(c->api);
    AUTO_BUF cookie = BUF_INIT;
    buf_addf(&cookie, "%s=%s; Path=/; HttpOnly; SameSite=Lax; Max-Age=%llu%s",
             secure ? SECURE : SITE_COOKIE, http_query(c->req, SITE_PARAM),
             (unsigned long long)c->site.left_s, secure ? "; Secure" : "");
    http_add_header(c->req, "Set-Cookie", cookie.data);
    http_add_header(c->req, "Cache-Control", "no-store");
    http_add_header(c->req, "Referrer-Policy", "no-referrer");
    add_location(c);
    http_reply(c->req, 303, NULL, "", 0);
}
