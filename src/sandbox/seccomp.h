#pragma once
/* The system call filter of everything that runs in a sandbox.
 *
 * A deny-list on top of the namespaces that answers with an errno and never kills: the rules are a
 * table in seccomp_rules.c. It is compiled once per nursery (libseccomp, as a binary tree) into
 * sealed memfds, since building it takes a millisecond, and entered as plain bytes, in two parts:
 * what a zygote can do without is refused to the zygote already, and its kernels inherit that,
 * since the kernel takes its time to check and to translate a filter; the rest is entered by each
 * of them. Refusals that a user should hear of are notifications: init answers them (see
 * seccomp_refusal) and remembers. So are calls that init makes in the caller's place. */

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum seccomp_part { SECCOMP_EARLY, SECCOMP_LATE, SECCOMP_PARTS_ };
/* A part of the compiled filter as a memfd of struct sock_filter. */
int seccomp_compile(enum seccomp_part part, int *ret_fd, struct err *e);

struct seccomp_refusal {
    int errnum;         /* what the caller gets */
    const char *op;     /* "mount a file system" */
    const char *detail; /* "mount() is not available in a sandbox" */
    const char *rule;   /* "seccomp:mount" */
};
/* What init does with a notified call. A pure function of the registers. */
enum seccomp_service {
    SECCOMP_REFUSE,  /* see seccomp_refusal */
    SECCOMP_SOCKET,  /* make the socket, with which the network namespace can be used */
    SECCOMP_ACCEPT,  /* let it have one more, if there are not too many */
    SECCOMP_BUFFER,  /* set SO_SNDBUF */
    SECCOMP_LOCK,    /* fcntl and flock: a lock on a file */
    SECCOMP_SYSINFO, /* tell of the sandbox, not of the machine */
    SECCOMP_MEMFD,   /* make a file in its place where no control group counts it */
    SECCOMP_EPOLL,   /* make one more, if there are not too many */
    SECCOMP_WATCH,   /* let it watch one more, if there are not too many */
    SECCOMP_REUSE,   /* set SO_REUSEADDR or SO_REUSEPORT */
    SECCOMP_CONNECT, /* ask whether it may, if it leads out */
    SECCOMP_IFACE,   /* tell of the interface, which is lo */
};
enum seccomp_service seccomp_service(int nr, const uint64_t args[6]);
/* How a notified call that is refused is answered; never NULL (a call that is not in the table gets
 * EPERM). `args` are the raw registers; the answer is in `scratch`, its strings are constants. */
const struct seccomp_refusal *seccomp_refusal(int nr, const uint64_t args[6],
                                              struct seccomp_refusal *scratch);
