#pragma once
/* Messages and descriptors between our own processes.
 *
 * Every channel is an AF_UNIX SEQPACKET socket: a message arrives whole or not at all, so a peer
 * that dies never leaves half a frame behind. A packet is a 4-byte header (type, version) and a
 * payload of at most WIRE_MAX bytes; anything larger travels as a sealed memfd beside it. Numbers
 * are in the machine's byte order: both ends are on one machine and of one build, or the version
 * says so.
 *
 * A reader trusts nothing: lengths are checked, surplus descriptors are closed on receipt, and one
 * `bad` flag remembers the first fault, so that a decoder reads all its fields and asks once at the
 * end (wire_end). The same code talks to hostile kernels. */

#include "base/err.h"
#include "wire/messages.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_MAX     65536 /* payload bytes in one packet */
#define WIRE_MAX_FDS 32
#define WIRE_ALL_FDS 253 /* that a packet can bring: the kernel's SCM_MAX_FD */
#define WIRE_VERSION 1

struct wire_out {
    size_t len;
    bool bad; /* something did not fit */
    int fds[WIRE_MAX_FDS];
    unsigned nfds; /* borrowed: the sender keeps them */
    uint8_t data[WIRE_MAX + 4];
};

void wire_begin(struct wire_out *o, enum wire_type type);
void wire_put_u32(struct wire_out *o, uint32_t v);
void wire_put_u64(struct wire_out *o, uint64_t v);
void wire_put_bytes(struct wire_out *o, const void *data, size_t len);
void wire_put_str(struct wire_out *o, const char *s);
void wire_put_fd(struct wire_out *o, int fd);

enum wire_sent { WIRE_SENT, WIRE_AGAIN, WIRE_FAILED };
/* One packet. WIRE_AGAIN only on a non-blocking socket whose buffer is full. */
enum wire_sent wire_send(int sock, const struct wire_out *o, struct err *e);

struct wire_in {
    size_t len, at;
    bool bad;
    enum wire_type type;
    int fds[WIRE_ALL_FDS]; /* owned until taken; wire_in_done closes the rest */
    unsigned nfds, fd_at;
    bool cut; /* we have no place for all of its descriptors: the last are missing */
    uint8_t data[WIRE_MAX + 4];
};

#define AUTO_WIRE_IN __attribute__((cleanup(wire_in_done))) struct wire_in

enum wire_got { WIRE_GOT, WIRE_NONE, WIRE_EOF, WIRE_BAD };
/* One packet; `i` must be zeroed or done. WIRE_NONE: nothing there on a non-blocking socket (or a
 * signal came). WIRE_BAD: the peer sent what no honest peer sends, or it is cut (then it can be
 * read all the same); e says what. The descriptors that came are in `i` even so. */
enum wire_got wire_recv(int sock, struct wire_in *i, struct err *e);
void wire_in_done(struct wire_in *i);

uint32_t wire_get_u32(struct wire_in *i);
uint64_t wire_get_u64(struct wire_in *i);
/* Borrowed: lives as long as the message. NULL and 0 when the message is bad. */
const uint8_t *wire_get_bytes(struct wire_in *i, size_t *ret_len);
/* A NUL-terminated string without NULs inside, at most max bytes long; "" when bad. Borrowed. */
const char *wire_get_str(struct wire_in *i, size_t max);
/* The next descriptor, now the caller's; -1 and bad when there is none. */
int wire_take_fd(struct wire_in *i);
/* 0 if everything read so far was there and nothing is left over; otherwise -1 and why. */
int wire_end(struct wire_in *i, struct err *e);

/* Parses the header of a packet that is already in i->data[0..len). For wire_recv and the fuzzer.
 */
int wire_open(struct wire_in *i, size_t len, struct err *e);

int wire_pair(int ret[2], struct err *e);
