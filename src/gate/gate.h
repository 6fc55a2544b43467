#pragma once
/* The gate: what sandboxes may reach outside, and the connections there. A process of its own, in
 * the host's network namespace, with no privilege and no sight of any sandbox. */

#include "config/config.h"
#include "gate/notes.h"
#include "loop/loop.h"
#include "loop/share.h"
#include "net/answers.h"
#include "net/bucket.h"
#include "net/policy.h"
#include "wire/chan.h"
#include "wire/codec.h"

enum { GATE_WARDEN = 3, GATE_CONFIG, GATE_RESOLV };

#define GATE_OUTSIDE_MOST   NET_GATE_SOCKETS
#define GATE_SANDBOXES_MOST 10000

struct host;
struct resolver;

struct gate {
    struct loop *loop;
    struct config config;
    struct chan warden, server;
    struct host *host;         /* owned */
    struct resolver *resolver; /* owned */
    struct loop_share reading; /* of what sandboxes say */
    struct attachment *all;    /* owned */
    unsigned nsandboxes;
    struct gate_tenant *tenants; /* owned */
    unsigned outside;            /* connections of all sandboxes, those on their way included */
    struct g_counts counts, told;
    struct timer count_timer;
};

/* What init and usher of a sandbox are to us: one channel, and what it was let. */
struct attachment {
    struct attachment *next;
    struct gate *gate; /* borrowed */
    uint64_t sandbox;
    struct gate_tenant *tenant; /* borrowed: it has joined */
    struct chan chan;
    struct net_policy policy;
    struct net_answers *answers; /* owned */
    struct link *links;          /* owned */
    unsigned npending, nopen;
    unsigned nclosing;      /* of those that are open: init was told to end them */
    struct name_ask *names; /* owned */
    unsigned nnames;
    struct net_bucket ask_bucket, new_bucket, name_bucket, hello_bucket;
    struct net_seen seen;
    struct notes notes;
    uint32_t told_open; /* the last G_OPEN */
    bool heard;         /* on this channel, something besides A_STANDS */
    bool over;
    struct {
        bool waits; /* G_IN_FORCE, until what it closes is over */
        uint32_t serial, closed;
        struct timer patience;
    } change;
    struct deferred free_later;
};

/* Everything that needs the file system is done here, before the filter. */
int gate_open(struct gate *g, struct err *e);
void gate_tell_server(struct gate *g, const struct wire_out *o);
/* Something was counted: it is told within a second. */
void gate_counted(struct gate *g);
struct net_own gate_own(const struct gate *g);
