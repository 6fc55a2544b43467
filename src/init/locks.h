#pragma once
/* Locks on files: fcntl's (POSIX's and those of an open file) and flock's; see locks.c. */

#include "init/caller.h"

#include <fcntl.h>
#include <stdbool.h>
#include <sys/types.h>

#define OWNERS_MAX 128 /* processes with POSIX locks, times files that each has locked */
#define USES_MAX   4
#define WAITS_MAX  128

struct lock_file {
    dev_t dev;
    ino_t ino;
};

/* A descriptor through which a process took a lock, and its file as one of ours, owned. */
struct lock_use {
    int number, fd;
};

/* What one process has locked of one file. */
struct lock_owner {
    pid_t process; /* 0: the entry is free */
    struct lock_file file;
    int holder; /* owned: an opening of the file, of our own, which has the locks */
    struct lock_use uses[USES_MAX];
    unsigned nuses;
};

struct lock_call {
    struct caller from;
    int fd; /* owned: its file */
    struct lock_file file;
    struct flock what; /* from the beginning of the file; not for flock() */
};

struct locks {
    struct lock_owner owners[OWNERS_MAX];
    unsigned nowners;                  /* entries from here on were never used */
    struct lock_call waits[WAITS_MAX]; /* oldest first */
    unsigned nwaits;
};

void locks_serve(struct locks *l, const struct caller *from);
/* In how many milliseconds locks_tick wants to be called; -1: never. */
int locks_patience(const struct locks *l);
/* Lets go of what its owners have closed, and goes on with those who wait. */
void locks_tick(struct locks *l);
