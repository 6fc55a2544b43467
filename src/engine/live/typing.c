/* See typing.h. Threads of the kernel work on what is typed, and nobody bills them:
 *   - for each byte. Where the terminal edits and echoes lines, one may print its whole line again;
 *   - whenever they wake the program. That wakes all who wait for the terminal, and a program can
 *     have all its epoll watches do so, and poll it in all its processes for what never comes
 * (seen: 0.14 ms for each of 13,000 polls and 1,500 watches). The end of a line wakes, and so does
 * each character with a meaning; where none has one, each piece.
 *
 * SECURITY: the program may change what has a meaning at any time. Who did while a piece was worked
 * on pays as if each byte had one: see command_io.c. */

#include "engine/live/typing.h"

#include <string.h>
#include <termios.h>

/* Bytes of a piece, and how long it may take: others wait to type. */
#define PIECE_MOST 256
#define PIECE_NS   4000000u

/* The kernel's time for a byte, plain and edited (measured: 11000). */
#define BYTE_NS        1000u
#define BYTE_EDITED_NS 15000u

/* To wake all epoll watches that a sandbox can have (measured: 72000), and one entry of a poll (7).
 */
#define WAKE_EPOLLS_NS 100000u
#define WAKE_POLL_NS   10u

#define MEANINGS_LOCAL (ICANON | ISIG | IEXTEN)
#define MEANINGS_INPUT (IXON | IXANY)

uint64_t typing_wake_ns(const struct limits *l) {
    return WAKE_EPOLLS_NS + (uint64_t)l->pids * l->open_files * WAKE_POLL_NS;
}

static bool has_meanings(const struct termios *t) {
    return t->c_lflag & MEANINGS_LOCAL || t->c_iflag & MEANINGS_INPUT;
}

static bool wakes(const struct termios *t, uint8_t byte) {
    if (!t || byte == '\n' || byte == '\r')
        return true;
    return has_meanings(t) && memchr(t->c_cc, byte, sizeof t->c_cc);
}

struct typing_piece typing_piece(const struct termios *t, const void *bytes, size_t len,
                                 uint64_t wake_ns) {
    bool edits = !t || (t->c_lflag & ICANON && t->c_lflag & ECHO);
    struct typing_piece p = {.cost_ns = wake_ns};
    for (const uint8_t *at = bytes; p.n < len && p.n < PIECE_MOST; at++) {
        uint64_t more = (edits ? BYTE_EDITED_NS : BYTE_NS) + (wakes(t, *at) ? wake_ns : 0);
        if (p.n && p.cost_ns + more > PIECE_NS)
            break;
        p.cost_ns += more;
        p.n++;
    }
    return p;
}

bool typing_differs(const struct termios *a, const struct termios *b) {
    return a->c_iflag != b->c_iflag || a->c_lflag != b->c_lflag ||
           memcmp(a->c_cc, b->c_cc, sizeof a->c_cc) != 0;
}
