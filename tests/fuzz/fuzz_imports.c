/* Any bytes as program text: every name reported must lie inside the text and look like a name. */

#include "engine/oneshot/imports.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct text {
    const uint8_t *data;
    size_t size;
    unsigned seen;
};

static void check(void *arg, const char *module, size_t len) {
    struct text *t = arg;
    const char *base = (const char *)t->data;
    if (len == 0 || module < base || len > t->size || module > base + (t->size - len))
        abort();
    if (memchr(module, '.', len) || memchr(module, '\n', len) || memchr(module, ' ', len))
        abort();
    if (++t->seen > IMPORTS_MAX_NAMES)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct text t = {data, size, 0};
    imports_scan(data, size, check, &t);
    static const char *const modules[] = {"os sys", "numpy pandas", "a b.c"};
    if (imports_choose(data, size, modules, 3) >= 3)
        abort();
    return 0;
}
