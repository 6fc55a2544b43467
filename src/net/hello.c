/* See hello.h; RFC 8446 §4.1.2, RFC 6066 §3. The hello is one handshake message, which may be cut
 * into records anywhere: hello_gather puts the records' insides together, and everything behind
 * reads that. */

#include "net/hello.h"

#include "net/rule.h"

#include <stdbool.h>
#include <string.h>

#define RECORD_HEAD      5
#define RECORD_HANDSHAKE 22
#define RECORD_MAX       (1 << 14)
#define CLIENT_HELLO     1
#define SERVER_NAME      0

struct hello_span {
    const uint8_t *at;
    size_t len;
};

/* A vector with its length in `width` bytes in front; false when it is cut. */
static bool hello_take(struct hello_span *from, unsigned width, struct hello_span *ret) {
    size_t len = 0;
    if (from->len < width)
        return false;
    for (unsigned i = 0; i < width; i++)
        len = len << 8 | from->at[i];
    if (len > from->len - width)
        return false;
    *ret = (struct hello_span){from->at + width, len};
    from->at += width + len;
    from->len -= width + len;
    return true;
}

static bool hello_skip(struct hello_span *from, size_t len) {
    if (from->len < len)
        return false;
    from->at += len;
    from->len -= len;
    return true;
}

/* The one name in the extension: a list of one, of the kind host_name. */
static bool hello_name(struct hello_span extension, char name[NET_NAME_SIZE]) {
    struct hello_span list, text;
    if (!hello_take(&extension, 2, &list) || extension.len != 0 || list.len < 1 || list.at[0] != 0)
        return false;
    return hello_skip(&list, 1) && hello_take(&list, 2, &text) && list.len == 0 &&
           net_name_clean((const char *)text.at, text.len, name) == NULL;
}

/* A whole ClientHello, without its head. */
static bool hello_parse(struct hello_span hello, char name[NET_NAME_SIZE]) {
    struct hello_span ignored, extensions, one;
    bool found = false;
    /* Version and random; session, ciphers, compression. */
    if (!hello_skip(&hello, 2 + 32) || !hello_take(&hello, 1, &ignored) ||
        !hello_take(&hello, 2, &ignored) || !hello_take(&hello, 1, &ignored) ||
        !hello_take(&hello, 2, &extensions) || hello.len != 0)
        return false;
    while (extensions.len > 0) {
        if (extensions.len < 2)
            return false;
        unsigned type = (unsigned)extensions.at[0] << 8 | extensions.at[1];
        if (!hello_skip(&extensions, 2) || !hello_take(&extensions, 2, &one))
            return false;
        if (type != SERVER_NAME)
            continue;
        if (found || !hello_name(one, name))
            return false;
        found = true;
    }
    return found;
}

struct hello_gathered {
    uint8_t bytes[NET_HEAD_BYTES];
    size_t len;  /* that are there */
    size_t need; /* bytes of the stream: that it has, or that tell more of it */
};

/* Takes what is there of the records until the handshake message is complete. */
static enum net_heard hello_gather(const uint8_t *data, size_t len, struct hello_gathered *g) {
    size_t at = 0, whole = 4;
    while (g->len < whole) {
        if (len - at < RECORD_HEAD) {
            g->need = at + RECORD_HEAD;
            /* What is there may show already that it is none. */
            return len > at && data[at] != RECORD_HANDSHAKE ? NET_HEARD_BAD : NET_HEARD_MORE;
        }
        size_t inside = (size_t)data[at + 3] << 8 | data[at + 4];
        if (data[at] != RECORD_HANDSHAKE || data[at + 1] != 3 || inside == 0 || inside > RECORD_MAX)
            return NET_HEARD_BAD;
        at += RECORD_HEAD;
        size_t here = len - at < inside ? len - at : inside;
        if (here > sizeof g->bytes - g->len)
            return NET_HEARD_BAD;
        memcpy(g->bytes + g->len, data + at, here);
        g->len += here;
        at += here;
        if (g->len >= 4) {
            whole = 4 + ((size_t)g->bytes[1] << 16 | (size_t)g->bytes[2] << 8 | g->bytes[3]);
            /* Nothing else in its last record: that could be another hello. */
            if (g->bytes[0] != CLIENT_HELLO || whole > sizeof g->bytes ||
                g->len - here + inside > whole)
                return NET_HEARD_BAD;
        }
        if (here < inside) {
            g->need = at + inside - here;
            return NET_HEARD_MORE;
        }
    }
    g->need = at;
    return NET_HEARD_NAME;
}

enum net_heard net_hello_read(const uint8_t *data, size_t len, char name[NET_NAME_SIZE],
                              size_t *ret_need) {
    struct hello_gathered g;
    g.len = g.need = 0;
    name[0] = '\0';
    enum net_heard heard = hello_gather(data, len, &g);
    if (heard == NET_HEARD_MORE && g.need > NET_HEAD_BYTES)
        return NET_HEARD_BAD;
    *ret_need = g.need;
    if (heard != NET_HEARD_NAME)
        return heard;
    if (hello_parse((struct hello_span){g.bytes + 4, g.len - 4}, name))
        return NET_HEARD_NAME;
    name[0] = '\0';
    return NET_HEARD_BAD;
}
