/* See watch_cpu.h. Theory of operation.
 *
 * There are two measures, and the greater counts.
 *   - What is told: the clocks of all processes that live, the times of the children that they have
 *     waited for, and of the orphans that init has. Exact, but for processes whose parent ignores
 *     SIGCHLD: the kernel drops these, and their times, on the spot.
 *   - What is sampled: by how much the clocks of those went forward that were there at the look
 *     before as well; and for one that is new, at which rate it runs right now, taken for all the
 *     time since then. Short-lived processes are not there often enough to be added up; but if
 *     there always is one that runs, every look finds it. This knows nothing of who waits for whom.
 *     It is right on average; as much as it may be too high by chance is taken off.
 * Looks come at random times (watch.c), or a program could hide from them. */

#include "init/watch_cpu.h"

#include "base/clock.h"
#include "base/fd.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define RATE_NAP_NS 100000 /* between two readings of a clock that tell how fast it goes */
#define DEVIATIONS  3

/* User and system time of the process, or of the children it has waited for. */
static uint64_t stat_us(const char *pid, bool children) {
    char path[64], text[1024];
    struct err ignored;
    unsigned long long t[4];
    snprintf(path, sizeof path, "/proc/%.16s/stat", pid);
    if (file_read_at(AT_FDCWD, path, text, sizeof text, &ignored) < 0)
        return 0;
    const char *p = strrchr(text, ')');
    if (!p || sscanf(p + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu",
                     &t[0], &t[1], &t[2], &t[3]) != 4)
        return 0;
    unsigned long long ticks = children ? t[2] + t[3] : t[0] + t[1];
    return ticks * 1000000u / (uint64_t)sysconf(_SC_CLK_TCK);
}

/* Finer than stat; -1: the process is gone. */
static int64_t clock_us(pid_t pid) {
    clockid_t clock;
    struct timespec t;
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) < 0)
        return -1;
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

struct cpu_look *cpu_begin(struct cpu_account *a) {
    a->which = !a->which;
    struct cpu_look *l = &a->looks[a->which];
    l->n = 0;
    l->at_us = now_ns() / 1000;
    l->told_us = stat_us("1", true); /* orphans that we reaped */
    return l;
}

void cpu_add(struct cpu_look *l, const char *pid, uint64_t anon, unsigned tasks) {
    pid_t number = (pid_t)strtol(pid, NULL, 10);
    int64_t clock = clock_us(number);
    uint64_t own_us = clock < 0 ? stat_us(pid, false) : (uint64_t)clock;
    l->told_us += own_us + stat_us(pid, true);
    if (l->n < CPU_MAX_PROCS)
        l->all[l->n++] = (struct cpu_seen){number, own_us, anon, tasks};
}

/* How many processors the new processes keep busy. One that ends meanwhile was at work. */
static double rate(const struct cpu_seen *fresh, unsigned n) {
    const struct timespec nap = {.tv_nsec = RATE_NAP_NS};
    static int64_t before[CPU_MAX_PROCS];
    uint64_t start_us = now_ns() / 1000;
    double busy_us = 0;
    for (unsigned i = 0; i < n; i++)
        before[i] = clock_us(fresh[i].pid);
    nanosleep(&nap, NULL);
    uint64_t end_us = now_ns() / 1000;
    double window_us = (double)(end_us - start_us + 1);
    for (unsigned i = 0; i < n; i++) {
        int64_t after = clock_us(fresh[i].pid);
        if (before[i] >= 0)
            busy_us += after < 0 ? window_us : (double)(after - before[i]);
    }
    double most = (double)sysconf(_SC_NPROCESSORS_ONLN);
    return busy_us / window_us < most ? busy_us / window_us : most;
}

/* Both are sorted, as /proc is. A number that is there twice is the same process: they go round
 * slowly. */
static void sample(struct cpu_account *a, const struct cpu_look *now, const struct cpu_look *last) {
    static struct cpu_seen fresh[CPU_MAX_PROCS];
    unsigned nfresh = 0, at = 0;
    for (unsigned i = 0; i < now->n; i++) {
        const struct cpu_seen *one = &now->all[i];
        while (at < last->n && last->all[at].pid < one->pid)
            at++;
        if (at == last->n || last->all[at].pid != one->pid)
            fresh[nfresh++] = *one;
        else if (one->own_us > last->all[at].own_us)
            a->sampled_us += one->own_us - last->all[at].own_us;
    }
    if (!nfresh)
        return;
    double part_us = rate(fresh, nfresh) * (double)(now->at_us - last->at_us);
    a->sampled_us += (uint64_t)part_us;
    a->squares_ms += (uint64_t)(part_us * part_us / 1e6);
}

int64_t cpu_growth(const struct cpu_account *a) {
    const struct cpu_look *now = &a->looks[a->which], *last = &a->looks[!a->which];
    int64_t sum = 0;
    for (unsigned i = 0, at = 0; i < last->n; i++) {
        const struct cpu_seen *one = &last->all[i];
        while (at < now->n && now->all[at].pid < one->pid)
            at++;
        if (at < now->n && now->all[at].pid == one->pid)
            sum += (int64_t)now->all[at].anon;
        sum -= (int64_t)one->anon;
    }
    return sum;
}

static uint64_t root(uint64_t square) {
    uint64_t r = 0;
    for (uint64_t bit = 1u << 31; bit; bit >>= 1) {
        if ((r | bit) * (r | bit) <= square)
            r |= bit;
    }
    return r;
}

void cpu_count(struct cpu_account *a) {
    const struct cpu_look *now = &a->looks[a->which], *last = &a->looks[!a->which];
    sample(a, now, last);
    uint64_t chance_us = DEVIATIONS * 1000 * root(a->squares_ms);
    uint64_t told = now->told_us > a->start_us ? now->told_us - a->start_us : 0;
    uint64_t sampled = a->sampled_us > chance_us ? a->sampled_us - chance_us : 0;
    uint64_t found = told > sampled ? told : sampled;
    if (found > a->used_us)
        a->used_us = found;
}

void cpu_start(struct cpu_account *a) {
    a->start_us = a->looks[a->which].told_us;
    a->used_us = a->sampled_us = a->squares_ms = 0;
}
