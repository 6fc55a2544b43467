#pragma once
/* The Host of every request on an HTTP/1 connection.
 *
 * SECURITY: hostile input, read by the usher before a byte of a request goes out. Whatever two
 * servers could read in two ways is bad: bare LF, folded lines, two Hosts, two lengths, a length
 * beside chunks, extensions of chunks, CONNECT. So is what follows an upgrade to something else.
 *
 *   struct net_http h = {0};
 *   peek at what has come, data of `len` bytes: net_http_look(&h, data, len, &l)
 *     l.pass > 0      so many bytes at its beginning may go out (bodies, and heads that were
 *                     allowed). Take as many out of the socket as can be sent, and call
 *                     net_http_passed with those that were; then look again. l.heard says nothing.
 *     NET_HEARD_MORE  a head, or the line of a chunk, that is not complete: at least l.need bytes
 *                     must be there
 *     NET_HEARD_NAME  a complete head for l.name: ask, and if it is allowed call net_http_allow and
 *                     look again. For the name that was allowed last there is nothing to ask: who
 *                     takes that back ends the connection.
 *     NET_HEARD_BAD   end the connection */

#include "net/bounds.h"
#include "net/hello.h"

#include <stdbool.h>

enum net_http_state {
    NET_HTTP_HEAD,
    NET_HTTP_PASS, /* `left` bytes may go out; then comes `next` */
    NET_HTTP_SIZE, /* the line of a chunk's size */
    NET_HTTP_CRLF, /* behind a chunk */
    NET_HTTP_END,  /* the same behind the last one, which ends the body */
};

/* All zero at the beginning of a connection. */
struct net_http {
    enum net_http_state state, next;
    uint64_t left;
    size_t looked;                                    /* bytes of a head in which there is no end */
    size_t head;                                      /* bytes of the head that was found last, */
    uint64_t length;                                  /* of its body, */
    bool chunked;                                     /* or how that comes */
    char name[NET_NAME_SIZE], allowed[NET_NAME_SIZE]; /* its Host; the last one that was allowed */
};

void net_http_look(struct net_http *h, const uint8_t *data, size_t len, struct net_looked *ret);
/* The head that the last look found may go. */
void net_http_allow(struct net_http *h);
/* The first `n` bytes of what was looked at went out: at most what the last look let pass. */
void net_http_passed(struct net_http *h, size_t n);
