/* See allow.h. URLs are compared in parts, as the library that will use them reads them: what looks
 * alike as a text may lead elsewhere. */

#include "fetch/allow.h"

#include "base/buf.h"
#include "base/fd.h"
#include "fetch/curl.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct parts {
    char *scheme, *host, *port, *path; /* owned by libcurl */
};

static void parts_done(const struct curl *c, struct parts *p) {
    c->curl_free(p->scheme);
    c->curl_free(p->host);
    c->curl_free(p->port);
    c->curl_free(p->path);
}

/* An escaped dot or slash may be read as a plain one by the server. */
static bool is_plain_path(const char *path) {
    for (const char *at = strchr(path, '%'); at; at = strchr(at + 1, '%')) {
        if (strncasecmp(at, "%2e", 3) == 0 || strncasecmp(at, "%2f", 3) == 0 ||
            strncasecmp(at, "%5c", 3) == 0)
            return false;
    }
    return !strchr(path, '\\');
}

static bool get(const struct curl *c, CURLU *u, CURLUPart what, char **ret) {
    return c->curl_url_get(u, what, ret, what == CURLUPART_PORT ? CURLU_DEFAULT_PORT : 0) ==
           CURLUE_OK;
}

static bool read_parts(const struct curl *c, const char *url, struct parts *ret) {
    CURLU *u = c->curl_url();
    *ret = (struct parts){0};
    bool good = u && c->curl_url_set(u, CURLUPART_URL, url, CURLU_DISALLOW_USER) == CURLUE_OK &&
                get(c, u, CURLUPART_SCHEME, &ret->scheme) &&
                get(c, u, CURLUPART_HOST, &ret->host) && get(c, u, CURLUPART_PORT, &ret->port) &&
                get(c, u, CURLUPART_PATH, &ret->path) &&
                (strcmp(ret->scheme, "http") == 0 || strcmp(ret->scheme, "https") == 0) &&
                is_plain_path(ret->path);
    c->curl_url_cleanup(u);
    return good;
}

static bool is_below(const struct parts *p, const struct parts *top) {
    size_t len = strlen(top->path);
    while (len > 0 && top->path[len - 1] == '/')
        len--;
    return strcmp(p->scheme, top->scheme) == 0 && strcasecmp(p->host, top->host) == 0 &&
           strcmp(p->port, top->port) == 0 && strncmp(p->path, top->path, len) == 0 &&
           (p->path[len] == '/' || p->path[len] == '\0');
}

static bool is_below_one(const struct curl *c, const struct parts *p, const char *url) {
    struct parts top;
    bool is = read_parts(c, url, &top) && is_below(p, &top);
    parts_done(c, &top);
    return is;
}

bool fetch_is_allowed(const char *url, const char *allowed) {
    struct err e;
    struct parts p;
    const struct curl *c = strspn(allowed, ",") < strlen(allowed) ? curl_load(&e) : NULL;
    if (!c)
        return false;
    bool is = false;
    for (const char *at = read_parts(c, url, &p) ? allowed : ""; *at && !is;) {
        size_t len = strcspn(at, ",");
        AUTO_FREE char *one = xstrndup(at, len);
        is = one && is_below_one(c, &p, one);
        at += len + (at[len] == ',');
    }
    parts_done(c, &p);
    return is;
}
