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
 *                     look again
 *     NET_HEARD_BAD   end the connection */

#include "net/bounds.h"
#include "net/hello.h"

#include <stdbool.h>

enum net_http_state {
    NET_HTTP_HEAD,
    NET_HTTP_ALLOWED, /* of a head, `left` bytes still have to go */
    NET_HTTP_BODY,    /* `left` bytes */
    NET_HTTP_SIZE,    /* the line of a chunk's size */
    NET_HTTP_CHUNK,   /* `left` bytes, with the CRLF */
    NET_HTTP_BAD,
};

struct net_http {
    enum net_http_state state;
    bool chunked;    /* the body of the head that was found last */
    uint64_t length; /* the same */
    uint64_t left;   /* bytes of this state */
    size_t head;     /* bytes of the head that was found last */
    size_t looked;   /* bytes of a head that is not complete, in which no end is */
};

struct net_http_looked {
    size_t pass;
    enum net_heard heard;
    size_t need;
    char name[NET_NAME_SIZE]; /* lower case, without a port; an address as it was written */
};

void net_http_look(struct net_http *h, const uint8_t *data, size_t len,
                   struct net_http_looked *ret);
/* The head that the last look found may go. */
void net_http_allow(struct net_http *h);
/* The first `n` bytes of what was looked at went out. */
void net_http_passed(struct net_http *h, const uint8_t *data, size_t n);
