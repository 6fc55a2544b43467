#pragma once
/* The sockets of a sandbox's processes, looked at one by one: those that the kernel's lists leave
 * out are told apart from those that can hold something; see unlisted.c. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct sockets;

#define UNLISTED_MOST 512 /* a sandbox has fewer (sockets.c) */

struct unlisted_one {
    int fd; /* owned */
    ino_t ino;
    uint64_t cookie;
    bool outside; /* not of our network namespace: the usher's */
    bool listed;
};

struct unlisted {
    unsigned n;
    struct unlisted_one all[UNLISTED_MOST];
};

struct unlisted_sum {
    unsigned inside, outside; /* how many were found that are in no list */
    uint64_t held;            /* what they can hold beyond what is charged (pages_held) */
};

/* Takes the sockets of TCP and UDP of all processes, until this thread has used so much time: none
 * of them ends before unlisted_drop. */
void unlisted_take(struct unlisted *u, struct sockets *s, uint64_t until_cpu_ns);
/* A list has the one of this cookie. */
void unlisted_mark(struct unlisted *u, const uint32_t cookie[2]);
struct unlisted_sum unlisted_sum(const struct unlisted *u);
void unlisted_drop(struct unlisted *u);
