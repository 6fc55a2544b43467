/* Any bytes as one of the short texts that a request brings: names of files, base64, ranges. What
 * is taken is what it should be, and what is made of it is safe to pass on. */

#include "api/files/paths.h"
#include "api/files/ranges.h"
#include "base/base64.h"
#include "base/fd.h"
#include "http/http_check.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds) {
    if (!holds)
        abort();
}

static void check_path(char *text) {
    if (paths_clean(text, false))
        return;
    must(text[0] != '/' && text[0] != '\0');
    for (const char *at = text; at; at = strchr(at, '/')) {
        at += *at == '/';
        size_t len = strcspn(at, "/");
        must(len > 0 && !(len == 1 && at[0] == '.') && !(len == 2 && strncmp(at, "..", 2) == 0));
    }
}

/* One line of printable ASCII whose quotes are its own. */
static void check_disposition(const char *text) {
    AUTO_BUF to = BUF_INIT;
    unsigned quotes = 0;
    paths_disposition(text, &to);
    for (size_t i = 0; i < to.len; i++) {
        must(to.data[i] >= 32 && to.data[i] < 127);
        quotes += to.data[i] == '"';
    }
    must(quotes == 2);
}

static void check_range(const char *text) {
    static const uint64_t sizes[] = {0, 1, 10, 1000000, UINT64_MAX / 32};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct range_part p = {0, 0};
        if (range_read(text, sizes[i], &p) != RANGE_PART)
            continue;
        must(p.len > 0 && p.from < sizes[i] && p.len <= sizes[i] - p.from);
    }
}

static void check_decode(char *text) {
    size_t len = strlen(text);
    if (!http_decode(text, len % 2))
        return;
    must(strlen(text) <= len);
    for (const char *c = text; *c; c++)
        must((unsigned char)*c >= 32 && *c != 127);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    AUTO_BUF bytes = BUF_INIT;
    AUTO_FREE char *text = malloc(size + 1);
    must(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    if (base64_decode(&bytes, text, size))
        must(bytes.len <= size / 4 * 3 + 3);
    check_disposition(text);
    check_range(text);
    AUTO_FREE char *copy = strdup(text);
    must(copy != NULL);
    check_path(copy);
    check_decode(text);
    return 0;
}
