#pragma once
/* The name in every ClientHello at the beginning of a TLS connection. There may be two: a server
 * that cannot use the first asks for another one (HelloRetryRequest), even behind early data.
 *
 * SECURITY: hostile input, read by the usher before a byte of a hello goes out. Used as http_head.h
 * says, whose place a hello has: look, and pass, wait, ask or end. After NET_TLS_CHECKED bytes the
 * handshake is over, and everything passes. */

#include "net/hello.h"

#include <stdbool.h>

#define NET_TLS_CHECKED (64 << 10) /* more than the early data that servers wade through */

enum net_tls_state {
    NET_TLS_FIRST,  /* a hello must come */
    NET_TLS_RECORD, /* a record, which may be a hello */
    NET_TLS_PASS,   /* `left` bytes may go out; then comes a record */
    NET_TLS_OPEN,   /* all that comes */
};

/* All zero at the beginning of a connection. */
struct net_tls {
    enum net_tls_state state;
    size_t hello; /* bytes of the one that was found last */
    size_t left, passed;
};

void net_tls_look(struct net_tls *t, const uint8_t *data, size_t len, struct net_looked *ret);
/* The hello that the last look found may go. */
void net_tls_allow(struct net_tls *t);
/* The first `n` bytes of what was looked at went out. */
void net_tls_passed(struct net_tls *t, size_t n);
