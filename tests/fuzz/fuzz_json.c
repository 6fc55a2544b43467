/* Any bytes as what a handler returned. What jansson reads is a value for us too, unless it lies
 * deeper than we go; and what is a value lets itself be put into a reply that jansson reads. */

#include "base/fd.h"
#include "base/json.h"
#include "base/json_value.h"

#include <jansson.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds) {
    if (!holds)
        abort();
}

static bool is_shallow(const char *text, size_t len) {
    size_t opened = 0;
    for (size_t i = 0; i < len; i++)
        opened += text[i] == '[' || text[i] == '{';
    return opened < JSON_VALUE_DEPTH;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const size_t flags = JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL;
    const char *text = (const char *)data;
    json_auto_t *read = json_loadb(text, size, flags, NULL);
    bool is = json_is_value(text, size);
    must(is || !read || !is_shallow(text, size));
    must(!is || json_is_utf8(text, size));
    return 0;
}
