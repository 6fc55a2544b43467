/* Any bytes as a stream of events: in whatever pieces they come, the same events are read. */

#include "mcp/sse.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void note(void *arg, const char *type, const char *id, const struct buf *event) {
    buf_addf(arg, "%zu %s %s ", event->len, type, id);
    buf_add(arg, event->data, event->len);
}

static void run(const uint8_t *data, size_t size, size_t step, struct buf *ret) {
    struct sse_reader r = SSE_READER_INIT;
    r.arg = ret;
    r.on_event = note;
    r.most = 1u << 20;
    for (size_t at = 0; at < size; at += step) {
        size_t n = size - at < step ? size - at : step;
        char *exact = malloc(n);
        memcpy(exact, data + at, n);
        if (!sse_read(&r, exact, n))
            abort(); /* no input is that long */
        free(exact);
    }
    sse_reader_done(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    AUTO_BUF whole = BUF_INIT;
    AUTO_BUF pieces = BUF_INIT;
    if (size == 0 || size > 1u << 19)
        return 0;
    run(data, size, size, &whole);
    run(data, size, 1 + data[0] % 5, &pieces);
    if (whole.len != pieces.len || memcmp(whole.data, pieces.data, whole.len) != 0)
        abort();
    return 0;
}
