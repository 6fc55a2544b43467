/* Any text as a URI, held against the templates that there are. */

#include "mcp/uri.h"

#include "base/json.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const patterns[] = {"cloche://sandbox/{name}/{+path}", "a{x}b{y}c{+z}d",
                                           "{a}-{b}-{c}-{d}", "{+a}"};
    AUTO_BUF uri = BUF_INIT;
    buf_add(&uri, data, size);
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        struct uri_match m;
        if (!uri_matches(patterns[i], uri.data, &m))
            continue;
        for (unsigned k = 0; k < m.n; k++)
            if (!*m.values[k] || !json_is_utf8(m.values[k], strlen(m.values[k])))
                abort();
        uri_match_done(&m);
    }
    return 0;
}
