/* See curl.h. */

#include "fetch/curl.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#define LIBRARY "libcurl.so.4"

const struct curl *curl_load(struct err *e) {
    static struct curl loaded; /* what it holds never changes */
    static const char *const names[] = {
#define X(type, name, args) #name,
        CURL_FUNCTIONS(X)
#undef X
    };
    void **to = (void **)(void *)&loaded;
    if (*to)
        return &loaded;
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    void *found[sizeof names / sizeof *names];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        found[i] = library ? dlsym(library, names[i]) : NULL;
        if (!found[i]) {
            err_set(e, ENOENT, "%s cannot be used: %s", LIBRARY, dlerror());
            return NULL;
        }
    }
    _Static_assert(sizeof loaded == sizeof found, "one pointer each");
    memcpy(to, found, sizeof found);
    if (loaded.curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK)
        return &loaded;
    memset(&loaded, 0, sizeof loaded);
    err_set(e, ENOMEM, "%s does not start", LIBRARY);
    return NULL;
}
