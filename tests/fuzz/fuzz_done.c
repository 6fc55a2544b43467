/* The payload of a K_DONE from a hostile kernel: refused, or all of it in bounds and the same when
 * sent again. The header is ours, so that the corpus outlives a renumbering of the messages. */

#include "wire/run.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds) {
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct wire_in in;
    static struct wire_out again;
    static struct done_msg done;
    struct err e;
    uint16_t head[2] = {WIRE_K_DONE, WIRE_VERSION};
    if (size > sizeof in.data - sizeof head)
        return 0;
    memcpy(in.data, head, sizeof head);
    memcpy(in.data + sizeof head, data, size);
    must(wire_open(&in, sizeof head + size, &e) == 0);
    if (done_get(&in, &done, &e) < 0)
        return 0;
    must(done.how <= DONE_REFUSED && done.exit_code <= 255 && done.nlines <= DONE_MAX_LINES);
    done_put(&again, &done);
    must(!again.bad && again.len == in.len && memcmp(again.data, in.data, in.len) == 0);
    return 0;
}
