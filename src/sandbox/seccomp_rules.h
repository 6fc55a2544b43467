#pragma once
/* The table of the system call filter: a row refuses a call, altogether or for some arguments, or
 * has init make it. For seccomp.c only. */

#include "sandbox/seccomp.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SOCK_KIND 0xf /* the rest of a socket's type are SOCK_CLOEXEC and SOCK_NONBLOCK */
#define NR_LAST   469 /* of Linux 6.18; every number up to here was judged */

struct condition {
    unsigned arg;
    uint32_t mask; /* 0: no condition */
    uint32_t value;
};

struct rule {
    int nr;
    int errnum;               /* 0: answered as if it had been done */
    struct condition when[2]; /* all must hold */
    bool prologue;            /* decided there: the row is here for its words */
    bool on_the_way;          /* a kernel does it itself before it is confined */
    bool served;              /* init does it for the caller */
    const char *op;           /* NULL: quiet */
    const char *detail;
    const char *rule;
};

extern const struct rule seccomp_rules[];
extern const size_t seccomp_nrules;
/* Of a row that is not the prologue's. */
enum seccomp_part seccomp_part_of(const struct rule *r);
