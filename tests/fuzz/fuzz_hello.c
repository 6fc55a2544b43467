/* Any bytes as the beginning of a TLS connection: each look asks for more than there is, and what
 * was read of a piece stands when there is more. As a whole connection, in whatever pieces it comes
 * the same names are asked for before the same bytes go out. */

#include "net/tls.h"

#include "base/buf.h"
#include "net/rule.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds) {
    if (!holds)
        abort();
}

static enum net_heard look(const uint8_t *data, size_t len, char *name) {
    char again[NET_NAME_SIZE];
    size_t need = 0;
    uint8_t *exact = malloc(len ? len : 1);
    memcpy(exact, data, len);
    enum net_heard heard = net_hello_read(exact, len, name, &need);
    free(exact);
    must(heard != NET_HEARD_MORE || (need > len && need <= NET_HEAD_BYTES));
    must((heard == NET_HEARD_NAME) == (name[0] != '\0'));
    if (heard == NET_HEARD_NAME)
        must(net_name_clean(name, strlen(name), again) == NULL && strcmp(name, again) == 0);
    return heard;
}

static void run(const uint8_t *data, size_t size, size_t step, struct buf *ret) {
    struct net_tls t = {0};
    size_t there = 0, at = 0;
    for (;;) {
        struct net_looked l;
        net_tls_look(&t, data + at, there - at, &l);
        must(l.pass <= there - at);
        if (l.pass > 0) {
            size_t n = l.pass < step ? l.pass : step;
            net_tls_passed(&t, n);
            at += n;
        } else if (l.heard == NET_HEARD_NAME) {
            buf_addf(ret, "%zu:%s ", at, l.name);
            net_tls_allow(&t);
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
    char whole[NET_NAME_SIZE], piece[NET_NAME_SIZE];
    enum net_heard heard = look(data, size, whole);
    for (size_t len = 0; len < size; len += 1 + len / 4) {
        enum net_heard part = look(data, len, piece);
        must(part == NET_HEARD_MORE || (part == heard && strcmp(piece, whole) == 0));
    }
    AUTO_BUF once = BUF_INIT;
    run(data, size, size + 1, &once);
    for (size_t step = 1 + size / 256; step < 4096; step *= 5) {
        AUTO_BUF pieces = BUF_INIT;
        run(data, size, step, &pieces);
        must(strcmp(once.data, pieces.data) == 0);
    }
    return 0;
}
