#pragma once
/* What the parts of the usher share: see usher.c. */

#include "net/bucket.h"
#include "net/dns.h"
#include "net/http_head.h"
#include "net/judge.h"
#include "net/tls.h"
#include "usher/usher.h"
#include "wire/codec.h"

#include <sys/socket.h>

enum side { INSIDE, OUTSIDE, SIDES };

/* Bytes from one side to the other. */
struct way {
    bool ended; /* nothing more will come, */
    bool shut;  /* and the other side knows it */
    char *rest; /* owned: what the other side has not taken, `len` bytes from `at` on */
    size_t at, len;
};

enum check_state {
    CHECK_PASSED, /* bytes go out */
    CHECK_READS,  /* what names the destination is not complete */
    CHECK_ASKS,   /* the gate decides */
};

struct relay {
    bool used;
    uint32_t id, slot;
    int fd[SIDES];
    struct way ways[SIDES]; /* by where the bytes come from */
    uint32_t check;         /* enum net_check */
    enum check_state state;
    bool bad;             /* what it says cannot be understood */
    int wakes_at;         /* SO_RCVLOWAT; 0: as it was made */
    bool last;            /* the program has ended its side */
    bool flushes;         /* both have; `fd[INSIDE]` is closed */
    uint64_t deadline_ms; /* for CHECK_READS, once there was a byte, CHECK_ASKS, and `flushes`; 0:
                             none */
    struct net_http http; /* the one or the other, by `check` */
    struct net_tls tls;
};

struct question {
    bool used;
    uint32_t id;
    uint64_t since_ms;
    int from;       /* which socket for datagrams, or -1 */
    unsigned namer; /* which connection */
    struct net_question asked;
    struct sockaddr_storage who, at; /* of datagrams: who asked, and which server */
};

/* A connection on which names are asked for. */
struct namer {
    int fd;
    bool waits; /* for an answer */
    uint64_t since_ms;
    size_t have;
    uint8_t packet[2 + NET_PACKET_BYTES];
};

struct usher {
    int events, channel, names[USHER_NAMES];
    struct usher_page *page;
    uint64_t bytes;     /* the bound on all; 0: none */
    unsigned deadlines; /* relays that have one */
    unsigned waits;     /* questions and namers */
    uint32_t serial;    /* of the last question */
    struct net_bucket rate;
    struct relay relays[USHER_SLOTS];
    struct question questions[NET_QUESTIONS];
    struct namer namers[NET_NAMERS];
};

/* Of a relay they are known by its id: when they are served its slot may be another's. */
enum event { EVENT_CHANNEL, EVENT_INSIDE, EVENT_OUTSIDE, EVENT_NAMES, EVENT_NAMER };

bool usher_watch(struct usher *u, int fd, uint32_t events, enum event kind, unsigned index);
/* Blocks until init takes it, who never waits for us. */
void usher_tell_init(struct usher *u, const struct wire_out *o);
