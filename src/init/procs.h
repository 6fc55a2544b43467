#pragma once
/* The processes of a sandbox that somebody outside knows by a number: kernels and commands, each of
 * which came in through kernel_enter and handed over its seccomp listener. */

#include "wire/messages.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#define PROCS_MAX 64 /* at once, the first kernel included */

struct proc {
    uint32_t number;
    pid_t pid;         /* 0: the entry is free */
    ino_t space;       /* its user namespace, which all that come from it are in; 0: not known */
    int pidfd;         /* -1: it has ended */
    int listener;      /* -1: nobody uses the filter any more */
    uint8_t noted[64]; /* bit set of system calls already told, by number */
    time_t told_at;    /* in a live sandbox: the last refusal, */
    unsigned told;     /* and how many there were in that second */
};

struct procs {
    struct proc all[PROCS_MAX];
    unsigned top; /* entries from here on were never used */
    bool live;    /* trees will be signalled: their user namespaces are worth a look */
};

/* No room for one more that lives. */
bool procs_full(struct procs *p);
/* How many live, of those that have not ended as far as is known. */
unsigned procs_alive(const struct procs *p);
/* Whether it is one of these itself, not one that came from it. */
bool procs_entered(const struct procs *p, pid_t pid);
/* Takes the listener. */
void procs_add(struct procs *p, uint32_t number, pid_t pid, int listener);
/* The pid that has or had the number; 0 if there is none. */
pid_t procs_pid(const struct procs *p, uint32_t number);
/* The number of the one that this process comes from, as far as that can be told; else 0. */
uint32_t procs_number(const struct procs *p, pid_t pid);
/* Returns an errno, 0 when it was sent. */
int procs_signal(struct procs *p, uint32_t number, uint32_t sig, uint32_t scope);
