#pragma once
/* A SEQPACKET socket on the event loop: whole messages in, a queue of messages out.
 *
 * The owner embeds it. chan_send never blocks: what the socket does not take is kept (descriptors
 * duplicated) and sent when there is room; `queued` tells a sender of bulk when to hold back, and
 * on_drain when to go on. on_gone comes once, when the peer is gone or sent nonsense; after it, and
 * in any callback, the owner may call chan_done, but frees the memory only through loop_defer. */

#include "loop/loop.h"
#include "loop/share.h"
#include "wire/wire.h"

struct chan_packet;

struct chan {
    struct loop *loop; /* borrowed */
    int fd;            /* owned */
    struct watch watch;
    struct chan_packet *head, *tail;
    size_t queued; /* bytes that wait */
    bool paused, gone;
    uint16_t version; /* the version in which both ends speak: ours (0 means the same), until an
                         older peer is heard or the owner sets it after chan_init */
    bool takes_cut; /* on_msg looks how many descriptors came: it gets messages that are cut, too */
    void (*on_msg)(struct chan *c, struct wire_in *in);
    void (*on_gone)(struct chan *c, const struct err *why);
    void (*on_drain)(struct chan *c); /* may be NULL: the queue is empty again */
    void *arg;
    /* Borrowed; or NULL. SECURITY: who closes the last descriptor of a memory file frees its
     * memory, which takes a second for some gigabytes. What a hostile peer sent is therefore given
     * to this one (as I_LEFT), to be closed there, after we have closed ours. */
    struct chan *heir;
    unsigned left;            /* descriptors that wait for this channel as an heir */
    struct loop_share *share; /* borrowed; or NULL; see chan_set_share */
    struct loop_sharer turn;  /* in that */
};

/* Takes *fd and makes it non-blocking. The callbacks and arg are set by the caller before. */
int chan_init(struct chan *c, struct loop *l, int *fd, struct err *e);
void chan_done(struct chan *c);
/* Closes descriptors that came from the peer: at the heir's, if there is one. A peer that sends
 * more than the heir can close is gone. */
void chan_leave(struct chan *c, int *fds, unsigned n);
void chan_send(struct chan *c, const struct wire_out *o);
/* No more messages are read until chan_resume. */
void chan_pause(struct chan *c);
void chan_resume(struct chan *c);
/* SECURITY: for hostile peers, of which there may be many; NULL: it is read without that. */
void chan_set_share(struct chan *c, struct loop_share *s, uint64_t owner);
/* Handles what has arrived by now and returns; for keeping order between two channels. True: there
 * may be more, but not now: it was a lot, or the share is spent. */
bool chan_pump(struct chan *c);
