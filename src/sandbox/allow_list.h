#pragma once
/* The system call filter of a small process of our own whose needs are known: what is listed is
 * allowed, everything else is answered in one way. Through libseccomp; no notifications. */

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

#define ALLOW_WHEN_MAX 3

/* Where the call's argument, masked, has this value. */
struct allow_when {
    unsigned arg;
    uint64_t mask; /* 0: no condition */
    uint64_t value;
};
struct allowed_call {
    int nr;
    struct allow_when when[ALLOW_WHEN_MAX]; /* all of them */
};
/* int arguments: the kernel takes them from the low half of a register, and what is in the other
 * half is nobody's. */
#define ALLOW_INT(n, number)                                                                       \
    { .arg = (n), .mask = UINT32_MAX, .value = (uint32_t)(number) }
#define ALLOW_BITS(n, bits, number)                                                                \
    { .arg = (n), .mask = (uint32_t)(bits), .value = (uint32_t)(number) }
#define ALLOW_NULL(n)                                                                              \
    { .arg = (n), .mask = UINT64_MAX, .value = 0 }

/* What becomes of a call that is not listed. */
enum allow_otherwise { ALLOW_ELSE_EPERM, ALLOW_ELSE_KILL };

/* Enters it for good; no_new_privs must be set. Another ABI's calls end the process. */
int allow_list_enter(const struct allowed_call *calls, size_t n, enum allow_otherwise otherwise,
                     struct err *e);
