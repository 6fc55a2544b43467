/* Any bytes as the requests of a connection: in whatever pieces they come, the same hosts are asked
 * for before the same bytes go out. */

#include "net/http_head.h"

#include "base/buf.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds) {
    if (!holds)
        abort();
}

/* The hosts, each with the number of bytes that went out before it, and how it ended. */
static void run(const uint8_t *data, size_t size, size_t step, struct buf *ret) {
    struct net_http h = {0};
    size_t there = 0, at = 0;
    for (;;) {
        struct net_looked l;
        uint8_t *exact = malloc(there - at + 1);
        memcpy(exact + 1, data + at, there - at);
        net_http_look(&h, exact + 1, there - at, &l);
        free(exact);
        must(l.pass <= there - at);
        if (l.pass > 0) {
            size_t n = l.pass < step ? l.pass : step;
            net_http_passed(&h, n);
            at += n;
        } else if (l.heard == NET_HEARD_NAME) {
            must(l.name[0] != '\0');
            buf_addf(ret, "%zu:%s ", at, l.name);
            net_http_allow(&h);
        } else if (l.heard == NET_HEARD_BAD) {
            buf_addf(ret, "%zu bad", at);
            return;
        } else if (there == size) {
            buf_addf(ret, "%zu more", at);
            return;
        } else {
            must(l.need > there - at);
            there = size - there < step ? size : there + step;
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    AUTO_BUF whole = BUF_INIT;
    if (size > 4096) /* a head is read anew for each byte */
        size = 4096;
    run(data, size, size + 1, &whole);
    for (size_t step = 1; step < 64; step *= 3) {
        AUTO_BUF pieces = BUF_INIT;
        run(data, size, step, &pieces);
        must(strcmp(whole.data, pieces.data) == 0);
    }
    return 0;
}
