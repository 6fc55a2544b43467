#pragma once
/* The network of a sandbox, as far as it is init's: see network.c. */

#include "init/caller.h"
#include "init/network/link.h"
#include "init/network/names.h"
#include "init/network/routes.h"
#include "init/network/traffic.h"
#include "init/network/usher.h"
#include "net/bucket.h"
#include "wire/codec.h"

struct init;

enum network_names { NAMES_UDP4, NAMES_UDP6, NAMES_TCP4, NAMES_TCP6, NAMES_SOCKETS };

#define NETWORK_SPENT "as many bytes went over the network as this sandbox may use"
#define TOLD_TARGETS  32
#define TOLD_TIMES    4

struct network {
    bool on;                  /* there was an I_NETWORK once */
    int events;               /* owned: an epoll descriptor that watches the others */
    int gate;                 /* owned; -1: away, */
    uint64_t away_ms;         /* since then */
    int raw[2];               /* owned: see syn.h; IPv4's, IPv6's */
    int diag;                 /* owned: see egress/diag.h */
    int names[NAMES_SOCKETS]; /* owned: what is sent to port 53 */
    bool names_watched;       /* by us, while there is no usher */
    uint64_t cookie;          /* of our network namespace */
    uint32_t connections;     /* that may be open */
    uint64_t bytes;           /* that may go through; 0: no bound */
    uint64_t tick_ms;         /* the next look after what waits */
    uint64_t looked_ms;       /* the last one that was for want of room */
    uint32_t serial;          /* of the last link */
    struct net_bucket rate;
    struct usher usher;
    struct link links[LINKS];
    unsigned top;              /* links from here on were never used */
    unsigned in[LINK_STATES_]; /* how many are in each state */
    struct route_table routes;
    struct name_table asked;
    struct traffic_table traffic;
    struct {
        uint64_t hash, at_s;
        unsigned n;
    } told[TOLD_TARGETS]; /* refusals of this second */
};

void network_init(struct network *n);
/* To be polled for input, with network_patience() in milliseconds at most; -1: none. */
int network_fd(const struct network *n);
int network_patience(const struct network *n);
void network_serve(struct init *b);

/* I_NETWORK: takes the channel to the gate; -1: the gate is gone. */
int network_attach(struct init *b, int *gate, struct err *e);
/* One of our children ended. */
void network_reaped(struct init *b, pid_t pid, int status);
/* Sockets in the namespace that are ours. */
unsigned network_sockets(const struct network *n);
/* Of these, those that are in no list of the kernel's. */
unsigned network_unlisted(const struct network *n);

/* For the files of the network alone. */
enum network_event { EVENT_GATE, EVENT_USHER, EVENT_RAW, EVENT_NAMES, EVENT_LINK };
int network_watch(struct network *n, int fd, uint32_t events, enum network_event kind,
                  unsigned index);
/* False: there is no gate now, or it does not read. */
bool network_tell_gate(struct network *n, const struct wire_out *o);
/* Tells the server of a refusal if that is news: a few times a second for each `op`, since the next
 * cell of a live sandbox may be refused the same. */
void network_tell_refusal(struct init *b, uint32_t process, const char *op, const char *detail,
                          const char *rule);
/* The same in two steps, for whom it takes time to find out which process it was. */
bool network_is_news(struct network *n, const char *op);
void network_tell_news(struct init *b, uint32_t process, const char *op, const char *detail,
                       const char *rule);
