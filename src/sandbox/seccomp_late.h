#pragma once
/* The late part of the system call filter as a program: see seccomp_late.c. For seccomp.c only. */

#include "base/err.h"

#include <linux/filter.h>
#include <stddef.h>

/* A call that is judged by a program written by hand; every path in it ends in an answer. */
struct seccomp_judge {
    int nr;
    const struct sock_filter *code;
    size_t len;
};

#define SECCOMP_LATE_MAX 512 /* instructions */

/* Entered with nothing loaded, after the ABI is known. `out` has room for SECCOMP_LATE_MAX. */
int seccomp_late(const struct seccomp_judge *judges, size_t njudges, struct sock_filter *out,
                 size_t *ret_len, struct err *e);
