/* See tls.h; RFC 8446 §4.1.4, §4.2.10 and §5. Behind the first hello the heads of records are
 * followed, and one that holds a hello is held back as the first one was. */

#include "net/tls.h"

#include <string.h>

#define RECORD_HEAD   5
#define RECORD_LARGE  ((1 << 14) + 2048) /* the most that an encrypted one may have (TLS 1.2) */
#define CIPHERED      16                 /* the least that one can have: its tag */
#define CHANGE_CIPHER 20
#define HANDSHAKE     22
#define DATA          23
#define CLIENT_HELLO  1
#define CERTIFICATE   11
#define CLIENT_KEYS   16
#define HELLO_LARGE   0x20200 /* longer ones no server takes */

/* Whether a handshake record may be the beginning of a hello; five bytes of a longer one are there.
 * Its version is not looked at: some servers of TLS 1.3 go by an extension alone. What ends a
 * resumed handshake of TLS 1.2 is encrypted, and looks like one once in 30,000 times: that
 * connection is reset. */
static bool tls_is_hello(const uint8_t *inside, size_t size) {
    if (inside[0] != CLIENT_HELLO || size < CIPHERED)
        return inside[0] == CLIENT_HELLO;
    size_t hello = (size_t)inside[1] << 16 | (size_t)inside[2] << 8 | inside[3];
    return hello <= HELLO_LARGE;
}

/* What only TLS 1.2 and older ones have: no server takes another hello after it. */
static bool tls_is_older(const uint8_t *inside) {
    return inside[0] == CLIENT_KEYS || inside[0] == CERTIFICATE;
}

static void tls_look_hello(struct net_tls *t, const uint8_t *data, size_t len,
                           struct net_looked *ret) {
    size_t need = len + 1;
    ret->heard = net_hello_read(data, len, ret->name, &need);
    ret->need = need;
    t->hello = need;
}

static void tls_look_record(struct net_tls *t, const uint8_t *data, size_t len,
                            struct net_looked *ret) {
    size_t size = len >= RECORD_HEAD ? (size_t)data[3] << 8 | data[4] : 0;
    /* Five bytes of a handshake tell what it is. */
    size_t inside = len >= 1 && data[0] == HANDSHAKE ? (size < 5 && size > 0 ? size : 5) : 0;
    ret->heard = NET_HEARD_MORE;
    ret->need = RECORD_HEAD + inside;
    if (len >= 1 && (data[0] < CHANGE_CIPHER || data[0] > DATA))
        ret->heard = NET_HEARD_BAD;
    if (len >= RECORD_HEAD && (data[1] != 3 || size == 0 || size > RECORD_LARGE))
        ret->heard = NET_HEARD_BAD;
    if (ret->heard == NET_HEARD_BAD || len < ret->need)
        return;
    if (data[0] == HANDSHAKE && tls_is_hello(data + RECORD_HEAD, size)) {
        tls_look_hello(t, data, len, ret);
    } else if (data[0] == HANDSHAKE && tls_is_older(data + RECORD_HEAD)) {
        t->state = NET_TLS_OPEN;
    } else {
        t->state = NET_TLS_PASS;
        t->left = RECORD_HEAD + size;
    }
}

void net_tls_look(struct net_tls *t, const uint8_t *data, size_t len, struct net_looked *ret) {
    memset(ret, 0, sizeof *ret);
    if (t->state == NET_TLS_FIRST)
        tls_look_hello(t, data, len, ret);
    else if (t->state == NET_TLS_RECORD)
        tls_look_record(t, data, len, ret);
    if (t->state != NET_TLS_PASS && t->state != NET_TLS_OPEN)
        return;
    ret->heard = NET_HEARD_MORE;
    ret->need = 1;
    ret->pass = t->state == NET_TLS_PASS && t->left < len ? t->left : len;
}

void net_tls_allow(struct net_tls *t) {
    t->state = NET_TLS_PASS;
    t->left = t->hello;
}

void net_tls_passed(struct net_tls *t, size_t n) {
    if (t->state != NET_TLS_PASS)
        return;
    t->left -= n < t->left ? n : t->left;
    t->passed += n;
    if (t->left == 0)
        t->state = t->passed >= NET_TLS_CHECKED ? NET_TLS_OPEN : NET_TLS_RECORD;
}
