#pragma once
/* Where a server is and who we are to it; for those who talk to it (call.c, wsclient.c). */

#include "remote/net/call.h"

#include <curl/curl.h>

struct remote {
    CURLM *multi;
    char *base;      /* owned: what stands in front of a path */
    char *unix_path; /* owned, or NULL */
    char *shown;     /* owned: as the user wrote it */
    char *key;       /* owned: the header, or NULL */
    bool is_local;
    int signals;
};

/* What every connection to it has in common. */
void remote_prepare(const struct remote *r, CURL *h);
/* What a failure of libcurl means to the user. */
int remote_failed(const struct remote *r, CURLcode code, const char *why, struct err *e);
int remote_bad_url(const char *url, const char *why, struct err *e);
