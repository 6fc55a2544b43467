/* See fetch.h. URLs are compared in parts, as the library that will use them reads them: what looks
 * alike as a text may lead elsewhere. */

#include "fetch/fetch.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct parts {
    char *scheme, *host, *port, *path; /* owned by libcurl */
};

static void parts_done(struct parts *p) {
    curl_free(p->scheme);
    curl_free(p->host);
    curl_free(p->port);
    curl_free(p->path);
}

/* An escaped dot or slash may be read as a plain one by the server. */
static bool is_plain(const char *path) {
    for (const char *at = strchr(path, '%'); at; at = strchr(at + 1, '%')) {
        if (strncasecmp(at, "%2e", 3) == 0 || strncasecmp(at, "%2f", 3) == 0 ||
            strncasecmp(at, "%5c", 3) == 0)
            return false;
    }
    return !strchr(path, '\\');
}

static bool read_parts(const char *url, struct parts *ret) {
    CURLU *u = curl_url();
    char *user = NULL, *password = NULL;
    *ret = (struct parts){0};
    bool good = u && curl_url_set(u, CURLUPART_URL, url, CURLU_DISALLOW_USER) == CURLUE_OK &&
                curl_url_get(u, CURLUPART_SCHEME, &ret->scheme, 0) == CURLUE_OK &&
                curl_url_get(u, CURLUPART_HOST, &ret->host, 0) == CURLUE_OK &&
                curl_url_get(u, CURLUPART_PORT, &ret->port, CURLU_DEFAULT_PORT) == CURLUE_OK &&
                curl_url_get(u, CURLUPART_PATH, &ret->path, 0) == CURLUE_OK &&
                curl_url_get(u, CURLUPART_USER, &user, 0) != CURLUE_OK &&
                curl_url_get(u, CURLUPART_PASSWORD, &password, 0) != CURLUE_OK &&
                (strcmp(ret->scheme, "http") == 0 || strcmp(ret->scheme, "https") == 0) &&
                is_plain(ret->path);
    curl_free(user);
    curl_free(password);
    curl_url_cleanup(u);
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

bool fetch_is_allowed(const char *url, const char *allowed) {
    struct parts p;
    bool is = false;
    for (const char *at = read_parts(url, &p) ? allowed : ""; *at && !is;) {
        size_t len = strcspn(at, ",");
        char *one = strndup(at, len);
        struct parts top;
        is = one && read_parts(one, &top) && is_below(&p, &top);
        if (one)
            parts_done(&top);
        free(one);
        at += len + (at[len] == ',');
    }
    parts_done(&p);
    return is;
}
