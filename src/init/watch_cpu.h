#pragma once
/* CPU time of all processes of a sandbox, those included that nobody waits for; see watch_cpu.c. */

#include <stdint.h>
#include <sys/types.h>

#define CPU_MAX_PROCS 4096

struct cpu_seen {
    pid_t pid;
    uint64_t own_us;
    /* Not its time, but this is the one list of who was there at the last look. */
    uint64_t anon;  /* bytes of memory */
    unsigned tasks; /* threads */
};

/* What one look found. */
struct cpu_look {
    uint64_t at_us;   /* when */
    uint64_t told_us; /* by the clocks of those alive, and what they and init have waited for */
    unsigned n;
    struct cpu_seen all[CPU_MAX_PROCS]; /* sorted by number */
};

struct cpu_account {
    uint64_t start_us;   /* what was told when the program began */
    uint64_t used_us;    /* since then; never less than before */
    uint64_t sampled_us; /* the other measure */
    uint64_t squares_ms; /* of its uncertain parts, added up */
    unsigned which;      /* of the looks is the last one */
    struct cpu_look looks[2];
};

/* A look is begun, then every process is added, then it is counted. */
struct cpu_look *cpu_begin(struct cpu_account *a);
void cpu_add(struct cpu_look *l, const char *pid, uint64_t anon, unsigned tasks);
void cpu_count(struct cpu_account *a);
/* By how much all who were there at both looks have grown, less what those had who are gone. */
int64_t cpu_growth(const struct cpu_account *a);
/* Instead of counting this look: the program begins now. */
void cpu_start(struct cpu_account *a);
