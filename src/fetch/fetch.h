#pragma once
/* HTTP requests of the server's own, through libcurl on our loop, to servers that the operator
 * named. No redirects, no proxies, no cookies, nothing but http and https. */

#include "base/err.h"
#include "loop/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fetcher;
struct fetch;

struct fetch_request {
    const char *url;            /* copied */
    const char *body;           /* copied: a POST of JSON; NULL: a GET */
    const char *const *headers; /* copied: "Name: value", NULL-terminated; or NULL */
    uint32_t timeout_s;
    void *arg;
    /* A piece of the body of a reply that is a 2xx; false: no more of it is wanted. */
    bool (*on_data)(void *arg, const void *data, size_t len);
    /* Once; `why` is NULL when all of a 2xx reply has come. The fetch is gone then. Never before
     * fetch_start returns, nor within on_data. */
    void (*on_done)(void *arg, const char *why);
};

int fetcher_new(struct loop *l, struct fetcher **ret, struct err *e);
int fetch_start(struct fetcher *f, const struct fetch_request *q, struct fetch **ret,
                struct err *e);
/* No callback comes any more. Not within on_data. */
void fetch_cancel(struct fetch *x);
