#pragma once
/* Questions to a kernel; for kernel/ only. */

#include "engine/kernel/kernels.h"
#include "loop/loop.h"

struct said;

struct kernel_query {
    struct kernel_query *next;
    struct kernel *kernel;
    uint64_t id;
    kernel_reply_fn *fn; /* NULL: nobody waits any more */
    void *arg;
    struct timer late;
};

void kernel_replied(struct kernel *k, struct said *s);
void kernel_fail_queries(struct kernel *k, const struct err *why);
