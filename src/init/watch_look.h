#pragma once
/* Looks at all processes of a sandbox, through /proc. */

#include "init/watch_cpu.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What one look at all processes found, in bytes. */
struct watch_look {
    uint64_t resident; /* anonymous and shared memory, mapped, counted by each process that does */
    uint64_t file;     /* mapped files, likewise */
    uint64_t highest;  /* the most that the kernel process ever had of all these */
    uint64_t largest;  /* the most anonymous memory of one process */
    uint64_t tables;   /* page tables, each process's own */
    unsigned tasks;    /* processes and threads, a number */
    /* From here on of a round only. */
    uint64_t own;    /* anonymous memory that no other process has */
    uint64_t anon;   /* anonymous memory, each page divided among those who have it */
    uint64_t shared; /* shared memory, likewise */
};

/* A look at all details, which a program can make slow: it is taken in parts. Zero: none is on. */
struct watch_round {
    DIR *dir; /* owned: how far it is; NULL: between two passes */
    struct watch_look sum, least;
    unsigned passes;
    unsigned most, seen; /* processes of one pass: at most; so far */
};

static inline uint64_t less(uint64_t a, uint64_t b) {
    return a > b ? a - b : 0;
}

static inline uint64_t most(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

/* The value of a line "\nkey: N kB" of such a file, in bytes; 0: it has none. */
uint64_t watch_field(const char *text, const char *key);

/* Cheap, whatever the processes have mapped. Of `most` processes, the lowest pids first. */
struct watch_look watch_look(pid_t kernel, unsigned most, struct cpu_look *cpu);
/* Goes on until `until_ns`, by one process at least. True: it is over, and `least` is what it
 * found. What is more than `enough` is looked at again. */
bool round_go_on(struct watch_round *r, pid_t kernel, uint64_t enough, uint64_t until_ns);
bool round_is_on(const struct watch_round *r);
/* Gives up the one that is on; `most` stays. */
void round_drop(struct watch_round *r);
