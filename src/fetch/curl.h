#pragma once
/* libcurl, loaded when it is first needed: most servers never are asked to fetch anything, and it
 * takes longer to load than all the rest of the server. For fetch/ only. */

#include "base/err.h"

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

/* The functions that we use, under their own names. */
#define CURL_FUNCTIONS(X)                                                                          \
    X(CURLcode, curl_global_init, (long))                                                          \
    X(CURL *, curl_easy_init, (void))                                                              \
    X(void, curl_easy_cleanup, (CURL *))                                                           \
    X(CURLcode, curl_easy_setopt, (CURL *, CURLoption, ...))                                       \
    X(CURLcode, curl_easy_getinfo, (CURL *, CURLINFO, ...))                                        \
    X(const char *, curl_easy_strerror, (CURLcode))                                                \
    X(struct curl_slist *, curl_slist_append, (struct curl_slist *, const char *))                 \
    X(void, curl_slist_free_all, (struct curl_slist *))                                            \
    X(CURLM *, curl_multi_init, (void))                                                            \
    X(CURLMcode, curl_multi_setopt, (CURLM *, CURLMoption, ...))                                   \
    X(CURLMcode, curl_multi_add_handle, (CURLM *, CURL *))                                         \
    X(CURLMcode, curl_multi_remove_handle, (CURLM *, CURL *))                                      \
    X(CURLMcode, curl_multi_assign, (CURLM *, curl_socket_t, void *))                              \
    X(CURLMcode, curl_multi_socket_action, (CURLM *, curl_socket_t, int, int *))                   \
    X(CURLMsg *, curl_multi_info_read, (CURLM *, int *))                                           \
    X(CURLU *, curl_url, (void))                                                                   \
    X(void, curl_url_cleanup, (CURLU *))                                                           \
    X(CURLUcode, curl_url_set, (CURLU *, CURLUPart, const char *, unsigned))                       \
    X(CURLUcode, curl_url_get, (const CURLU *, CURLUPart, char **, unsigned))                      \
    X(void, curl_free, (void *))

struct curl {
#define X(type, name, args) type(*name) args;
    CURL_FUNCTIONS(X)
#undef X
};

/* NULL when it is not installed. */
const struct curl *curl_load(struct err *e);
