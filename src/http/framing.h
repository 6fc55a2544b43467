#pragma once
/* Where requests end: follows the bytes of one connection, in whatever pieces they come, through
 * heads, bodies, chunks and trailers, and says the first thing that is wrong with a chunked body or
 * with the length that a head gives.
 * It keeps nothing of what it sees, and skips bodies of a known length. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum framing_state {
    FRAMING_HEAD,
    FRAMING_BODY,
    FRAMING_SIZE,
    FRAMING_EXTENSION,
    FRAMING_SIZE_LF,
    FRAMING_DATA,
    FRAMING_DATA_CR,
    FRAMING_DATA_LF,
    FRAMING_TRAILER,
    FRAMING_TRAILER_LF,
    FRAMING_STATES_
};

/* All zero: a connection that begins. */
struct framing {
    enum framing_state state;
    uint64_t heads, bodies; /* how many have come whole; a request without a body counts in both */
    const char *wrong;      /* with request number `heads`, in words; nothing is read on */
    bool cut;               /* `wrong` is in its head, which counts as whole */
    /* the rest is its own */
    uint64_t left;    /* of a body or a chunk; while a number is read, that number */
    uint32_t line;    /* bytes of the line at hand, or digits of a size */
    uint32_t digits;  /* of the length that a head gives */
    uint32_t section; /* bytes of the trailers */
    uint8_t field;    /* of a line: its name is read, or what it was */
    bool chunked;     /* says the head at hand */
    char last;        /* the byte before, in a head */
    char name[24];    /* of the field at hand, in small letters; cut */
};

/* Heads are believed to be what http_check.c lets through: lines that end in CR LF, one length or
 * one encoding. A head that it refuses may be followed wrongly, for its connection ends. Returns
 * how many bytes there were before what is wrong. */
size_t framing_add(struct framing *f, const char *data, size_t len);
