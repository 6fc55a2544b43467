#pragma once
/* A K_SAY: what is short is read at once, what is long beside the loop. Its owner hears nothing
 * else meanwhile.
 *
 * SECURITY: the kernel is hostile: to read a large message takes us longer than it takes to say,
 * so the owner counts the time (see rest.h). */

#include "engine/said/said.h"
#include "loop/crew.h"

#include <stdint.h>

struct chan;
struct k_say;
struct wire_in;

/* Embedded in its owner's, who frees it. */
struct said_long {
    struct work work;
    struct crew *crew; /* borrowed */
    int fd;            /* owned: the message; or -1 */
    struct buf text;   /* the message, when it is in no file */
    bool is_bad;       /* it is nothing that a kernel says */
    uint64_t cpu_ns;   /* spent on reading */
    struct said said;
    void (*done)(struct said_long *l); /* in the loop */
};

enum said_how { SAID_SHORT, SAID_LONG, SAID_BAD };
/* SAID_SHORT: `ret` is to be done with. SAID_LONG: `m` is for said_long_begin, at once. */
enum said_how said_get(struct wire_in *in, struct k_say *m, struct said *ret);
/* `l` is zero but for `crew` and `done`. */
void said_long_begin(struct said_long *l, uint64_t owner, struct wire_in *in,
                     const struct k_say *m);
/* It was read. First its descriptor goes back to where it came from, if that is there still; then
 * all else is freed. */
void said_long_leave(struct said_long *l, struct chan *from);
void said_long_end(struct said_long *l);
/* The answer to who waits for one: what it prints next comes after what it has said. */
void said_go(int64_t number, struct buf *to);
