#pragma once
/* The bounds of a sandbox's network, which init, usher and gate hold alike: each counts before it
 * asks the next, so that a faulty one costs nothing but its own sandbox. */

/* One sandbox. */
#define NET_PENDING           128 /* connects without an answer yet: more than may be new at once */
#define NET_CONNECTIONS       256 /* open at once: the default, and the most that a policy can say */
#define NET_NEW_PER_SECOND    20
#define NET_NEW_BURST         100
#define NET_ASKS_PER_SECOND   200 /* connects that the gate judges, refused ones included */
#define NET_ASKS_BURST        400
#define NET_DESTINATIONS      256 /* different addresses and ports a minute */
#define NET_HELLOS_PER_SECOND 50  /* names that its connections say */
#define NET_HELLOS_BURST      200
#define NET_QUESTIONS         64 /* for names, without an answer yet */
#define NET_ASKED_PER_SECOND  50
#define NET_ASKED_BURST       100
#define NET_NAMERS            16   /* TCP connections to port 53 */
#define NET_ANSWERS           1024 /* addresses that names had, remembered */
#define NET_ANSWER_GRACE_MS   (10 * 60 * 1000)
#define NET_TTL_MAX           300 /* seconds that an answer may be kept */
#define NET_ADDRESSES         32  /* in an answer */

/* The errno of a connect() that is one too many, as when all ports are taken. Not EAGAIN: asyncio,
 * Twisted and curl take that for EINPROGRESS, find a socket that is writable and has no error, and
 * believe that it is connected. */
#define NET_TOO_MANY EADDRNOTAVAIL

/* A policy. */
#define NET_ALLOW_MAX 256
#define NET_DENY_MAX  64
#define NET_PORTS_MAX 16           /* ports and ranges of a rule */
#define NET_SETS_MAX  64           /* named sets */
#define NET_BYTES_MAX (1ull << 53) /* whole in every JSON reader */

/* An outside socket; the kernel doubles the buffers. */
#define NET_BUFFER_BYTES          (128 * 1024)
#define NET_INWARD_BYTES          (64 * 1024)   /* the same of a connection to a server inside */
#define NET_CHARGE_BYTES          (1024 * 1024) /* of the budget, for both legs: 474 + 512 KiB */
#define NET_OPEN_STEP             16            /* the step in which G_OPEN counts */
#define NET_CONNECT_MS            (130 * 1000)
#define NET_KEEPALIVE_SECONDS     60
#define NET_GATE_SOCKETS          8192 /* of all sandboxes; one tenant's get half of them at most */
#define NET_TENANT_NEW_PER_SECOND 200
#define NET_TENANT_NEW_BURST      NET_GATE_SOCKETS

/* The usher. */
#define NET_HEAD_BYTES   (16 * 1024) /* of a ClientHello, of an HTTP head */
#define NET_FLUSH_MS     (60 * 1000) /* for the other host to acknowledge the last bytes */
#define NET_HEAD_MS      (10 * 1000) /* within which a head has to come */
#define NET_PACKET_BYTES 512         /* a reply over UDP, a question over either */

/* Texts, with their NUL. */
#define NET_NAME_SIZE   254
#define NET_WORD_SIZE   100 /* what decided: a rule, "network:default-deny" */
#define NET_OP_SIZE     200
#define NET_DETAIL_SIZE 400

/* Where refused names of a policy with `refuse: "unreachable"` point: RFC 7600's dummy address and
 * one of RFC 6666's discard prefix. Both lie in closed ranges. */
#define NET_SENTINEL_4 "192.0.0.8"
#define NET_SENTINEL_6 "100::1"
