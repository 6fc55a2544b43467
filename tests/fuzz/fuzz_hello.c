/* Any bytes as the beginning of a TLS connection: each look asks for more than there is, and what
 * was read of a piece stands when there is more. */

#include "net/hello.h"

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char whole[NET_NAME_SIZE], piece[NET_NAME_SIZE];
    enum net_heard heard = look(data, size, whole);
    for (size_t len = 0; len < size; len += 1 + len / 4) {
        enum net_heard part = look(data, len, piece);
        must(part == NET_HEARD_MORE || (part == heard && strcmp(piece, whole) == 0));
    }
    return 0;
}
