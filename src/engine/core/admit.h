#pragma once
/* Whether a guest may come in: its limits against the operator's maxima, and whether there is room
 * to wait. What is refused is refused with the value, what is allowed, and what to do. */

#include "config/config.h"

#include <stdint.h>

struct profile_pool;
struct input_file;

/* What is 0 becomes the default, and nothing is above the maximum, unless the default is; a maximum
 * of 0 is none. Limits of other scopes are left alone. Of a whole sandbox `pids` and `open_files`
 * together are bounded, too. */
int limits_settle(const struct limits *defaults, const struct limits *maxima, unsigned scopes,
                  struct limits *l, struct err *e);
/* The most of `pids` that goes with so many open files of each process. */
uint32_t limits_most_pids(uint32_t open_files);

/* A guest that asks for a place in the queue of a pool. */
struct admission {
    struct profile_pool *pool;
    const char *tenant;
    const struct limits *defaults;
    struct limits maxima;
    struct limits *limits; /* what it wants; admit fills in the rest */
    const struct input_file *inputs;
    unsigned ninputs;
    uint64_t files_bytes; /* besides the inputs'; admit adds those */
    /* What is only its own, asked when the limits are known; or NULL. */
    int (*check)(struct admission *a, struct err *e);
    void *arg;
};

/* 0 when it may wait, or begin. In a full queue another tenant's newest may have to give way:
 * queue.h says when. */
int admit(struct admission *a, struct err *e);
