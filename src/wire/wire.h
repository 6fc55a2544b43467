#pragma once
/* Messages and descriptors between our own processes.
 *
 * Every channel is an AF_UNIX SEQPACKET socket: a message arrives whole or not at all, so a peer
 * that dies never leaves half a frame behind. A packet is a 4-byte header (type, version) and a
 * payload of at most WIRE_MAX bytes; anything larger travels as a sealed memfd beside it. Numbers
 * are in the machine's byte order: both ends are on one machine.
 *
 * A reader trusts nothing: lengths are checked, surplus descriptors are closed on receipt. The same
 * code talks to hostile kernels. codec.h turns payloads into structs and back.
 *
 * Versions. Two ends may be of different builds: sandboxes outlive the server that made them. The
 * version in a packet's header says how its payload is laid out. A reader takes every version from
 * WIRE_OLDEST to its own and refuses all others, with WIRE_BAD and EPROTONOSUPPORT. The newer of
 * two peers speaks as the older one does: a channel (chan.h) learns the version from what it hears,
 * or is told, and wire_lower leaves out what an older peer does not know. */

#include "base/err.h"
#include "wire/messages.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_MAX     65536 /* payload bytes in one packet */
#define WIRE_MAX_FDS 32
#define WIRE_ALL_FDS 253 /* that a packet can bring: the kernel's SCM_MAX_FD */
#define WIRE_VERSION 8   /* one more with every change of messages.h or run.h */
#define WIRE_OLDEST  2   /* that is still understood */
#define WIRE_MARKS   8   /* versions that one message may have seen */

/* Where the part of a packet ends that came before a version. */
struct wire_mark {
    uint16_t since;
    unsigned nfds;
    size_t len;
};

struct wire_out {
    size_t len;
    bool bad; /* something did not fit */
    int fds[WIRE_MAX_FDS];
    unsigned nfds; /* borrowed: the sender keeps them */
    unsigned nmarks;
    struct wire_mark marks[WIRE_MARKS];
    uint8_t data[WIRE_MAX + 4];
};

/* All of a message that carries nothing; the others begin with a putter of codec.h or run.h. */
void wire_begin(struct wire_out *o, enum wire_type type);
const char *wire_out_name(const struct wire_out *o);
/* Whether a peer of that version gets it at all: it fits, and there is such a message for it. */
bool wire_reaches(const struct wire_out *o, uint16_t version);
/* What a peer of an older version gets of it; false when it has no such message. */
bool wire_lower(const struct wire_out *o, uint16_t version, struct wire_out *ret);

enum wire_sent { WIRE_SENT, WIRE_AGAIN, WIRE_FAILED };
/* One packet. WIRE_AGAIN only on a non-blocking socket whose buffer is full. */
enum wire_sent wire_send(int sock, const struct wire_out *o, struct err *e);

struct wire_in {
    size_t len, at;
    bool bad;
    enum wire_type type;
    uint16_t version;
    int fds[WIRE_ALL_FDS]; /* owned until taken; wire_in_done closes the rest */
    unsigned nfds, fd_at;
    bool cut; /* we have no place for all of its descriptors: the last are missing */
    uint8_t data[WIRE_MAX + 4];
};

#define AUTO_WIRE_IN __attribute__((cleanup(wire_in_done))) struct wire_in

enum wire_got { WIRE_GOT, WIRE_NONE, WIRE_EOF, WIRE_BAD };
/* One packet; `i` must be zeroed or done. WIRE_NONE: nothing there on a non-blocking socket (or a
 * signal came). WIRE_BAD: the peer sent what no honest peer sends, or is of a version that we do
 * not know, or the packet is cut (then it can be read all the same); e says what. The descriptors
 * that came are in `i` even so. */
enum wire_got wire_recv(int sock, struct wire_in *i, struct err *e);
void wire_in_done(struct wire_in *i);

/* Parses the header of a packet that is already in i->data[0..len). For wire_recv and the fuzzer.
 */
int wire_open(struct wire_in *i, size_t len, struct err *e);

int wire_pair(int ret[2], struct err *e);
