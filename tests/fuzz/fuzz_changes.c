/* Any bytes as the list of files in a workspace: what is taken must be relative paths that lead
 * nowhere else, and no more of them than asked for. */

#include "engine/core/changes.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MOST 50

static void check(const struct change *c) {
    size_t len = strlen(c->path);
    if (len == 0 || c->path[0] == '/' || c->path[len - 1] == '/' || strstr(c->path, "//"))
        abort();
    if (strcmp(c->path, "..") == 0 || strncmp(c->path, "../", 3) == 0 || strstr(c->path, "/../"))
        abort();
    if (len >= 3 && strcmp(c->path + len - 3, "/..") == 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct changes c = {0};
    struct err e;
    if (changes_parse(data, size, MOST, &c, &e) < 0)
        return 0;
    if (c.n > MOST)
        abort();
    for (unsigned i = 0; i < c.n; i++)
        check(&c.items[i]);
    changes_done(&c);
    return 0;
}
