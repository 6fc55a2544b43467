/* Any bytes as what a program prints at a terminal: what is shown does not depend on the pieces it
 * came in, and is shown as it is when it is printed again: nothing in it is left to leave out. */

#include "cli/screen.h"

#include "base/buf.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds) {
    if (!holds)
        abort();
}

static void show(struct buf *to, const char *text, size_t len, size_t step) {
    struct screen s = {0};
    for (size_t at = 0; at < len; at += step)
        screen_filter(&s, to, text + at, len - at < step ? len - at : step);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *text = (const char *)data;
    AUTO_BUF whole = BUF_INIT;
    AUTO_BUF pieces = BUF_INIT;
    AUTO_BUF again = BUF_INIT;
    show(&whole, text, size, size + 1);
    show(&pieces, text, size, 1);
    must(whole.len == pieces.len && memcmp(whole.data, pieces.data, whole.len) == 0);
    show(&again, whole.data, whole.len, whole.len + 1);
    must(whole.len == again.len && memcmp(whole.data, again.data, whole.len) == 0);
    return 0;
}
