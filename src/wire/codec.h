#pragma once
/* The payloads of messages as structs. messages.h describes each once; from that come, for W_MAKE,
 *
 *   struct w_make      its fields
 *   w_make_put()       begins a packet and writes them
 *   w_make_get()       reads and checks them: 0, or -1 and why
 *
 * A getter takes all of the payload or nothing counts: it refuses another type, a cut field, a
 * number or a string beyond its bound, surplus bytes, and missing or surplus descriptors. After a
 * refusal what was read so far is in the struct, and the rest is 0, "" or -1.
 *
 * Strings, bytes and descriptors are borrowed: they live as long as the message. wire_keep takes a
 * descriptor out of it. Putters do not check bounds, so that a question beyond them is answered by
 * whoever refuses it; only text is cut, and what does not fit at all is not sent. What is given to
 * a putter is borrowed until the packet is sent. */

#include "base/buf.h"
#include "wire/limits.h"
#include "wire/wire.h"

struct wire_bytes {
    const void *data;
    size_t len;
};

/* A list of strings, one behind the other as they travel: wire_strs_add writes one, wire_strs_next
 * reads them. */
struct wire_strs {
    uint32_t n;
    const uint8_t *raw;
    size_t len;
};

/* Adds a string to what becomes `raw`. */
void wire_strs_add(struct buf *raw, const char *s);
/* Takes the first string off the list; NULL when there is none. */
const char *wire_strs_next(struct wire_strs *s);

struct wire_fds {
    unsigned n;
    int fd[WIRE_MAX_FDS];
};

#define WIRE_MEMBER_u32(name, most)          uint32_t name;
#define WIRE_MEMBER_u64(name, most)          uint64_t name;
#define WIRE_MEMBER_str(name, most)          const char *name;
#define WIRE_MEMBER_text(name, most)         const char *name;
#define WIRE_MEMBER_bytes(name, most)        struct wire_bytes name;
#define WIRE_MEMBER_strs(name, most)         struct wire_strs name;
#define WIRE_MEMBER_limits(name, most)       struct limits name;
#define WIRE_MEMBER_fd(name, most)           int name;
#define WIRE_MEMBER_fd_or(name, most)        int name;
#define WIRE_MEMBER_fds(name, most)          struct wire_fds name;
#define WIRE_MEMBER_fd_map(name, most)       int name[most];
#define WIRE_MEMBER(since, kind, name, most) WIRE_MEMBER_##kind(name, most)

#define P(lower, upper, surplus)                                                                   \
    struct lower {                                                                                 \
        lower##_fields(WIRE_MEMBER)                                                                \
    };
WIRE_PAYLOADS(P)
#undef P

enum wire_payload {
#define P(lower, upper, surplus) WIRE_PAYLOAD_##lower,
    WIRE_PAYLOADS(P)
#undef P
        WIRE_PAYLOADS_
};

enum wire_kind {
    WIRE_u32,
    WIRE_u64,
    WIRE_str,
    WIRE_text,
    WIRE_bytes,
    WIRE_strs,
    WIRE_limits,
    WIRE_fd,
    WIRE_fd_or,
    WIRE_fds,
    WIRE_fd_map
};

struct wire_field {
    enum wire_kind kind;
    uint16_t since; /* the version that brought it; 0: the message's own */
    size_t offset;
    uint32_t most;
};

struct wire_layout {
    enum wire_type type;
    size_t size;  /* of the struct */
    bool surplus; /* more descriptors than the fields name may come */
    size_t nfields;
    const struct wire_field *fields;
};

const struct wire_layout *wire_layout(enum wire_payload which);
void wire_put(struct wire_out *o, const struct wire_layout *l, const void *m);
int wire_get(struct wire_in *i, const struct wire_layout *l, void *ret, struct err *e);

/* A message that carries nothing; wire_begin begins one. */
int wire_get_nothing(struct wire_in *i, struct err *e);

/* The descriptor is the caller's from here on. -1 stays -1. */
int wire_keep(struct wire_in *i, int fd);
void wire_keep_all(struct wire_in *i, const int *from, unsigned n, int *to);

#define P(lower, upper, surplus)                                                                   \
    static inline void lower##_put(struct wire_out *o, const struct lower *m) {                    \
        wire_put(o, wire_layout(WIRE_PAYLOAD_##lower), m);                                         \
    }                                                                                              \
    static inline int lower##_get(struct wire_in *i, struct lower *ret, struct err *e) {           \
        return wire_get(i, wire_layout(WIRE_PAYLOAD_##lower), ret, e);                             \
    }
WIRE_PAYLOADS(P)
#undef P
