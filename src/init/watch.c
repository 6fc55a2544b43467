/* See watch.h. Theory of operation.
 *
 * A kernel process is born with the memory of its zygote, most of it shared. What counts is what
 * came since, and that is looked at in two ways, because each alone can be fooled:
 *   - `own` pages, which nobody else has. Exact for a program that does not fork; but pages that a
 *     program shares among its own processes are nobody's own.
 *   - the `anon` share: every page divided among those who have it, added up over the sandbox. No
 *     sharing inside hides anything from it; but it holds a part of the inherited pages, which
 *     rises as the zygote's other children go. It is surely less than all that was inherited, so
 *     that is taken off.
 * The greater of the two counts. When the zygote and all its other children are gone, every
 * inherited page is suddenly this process's own: such a leap, which no growth explains, raises the
 * baseline, by what was inherited at the most.
 *
 * Memory outside of any process counts too: memfd files, System V segments and shared mappings.
 * Files on tmpfs do not: they are bounded by their own quota.
 *
 * status is cheap; smaps_rollup walks the page tables, and is read only when the limit could be
 * reached or the peak has risen. */

#include "init/watch.h"

#include "base/fd.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define WATCH_MS    20
#define LOOSE_TICKS 5           /* ticks between two looks at descriptors */
#define LOOKS       3           /* at what is too much */
#define LEAP        (64u << 20) /* more than a program can write to between two looks */
#define RISE        (1u << 20)  /* so much more resident is worth a look at the peak */
#define MAX_LOOSE   16384       /* power of two */

/* /proc is mounted with hidepid, which does not hide anything from us: we hold CAP_SYS_PTRACE here.
 */
static bool read_proc(const char *pid, const char *name, char *buf, size_t cap) {
    char path[64];
    struct err e;
    snprintf(path, sizeof path, "/proc/%.16s/%s", pid, name);
    return file_read_at(AT_FDCWD, path, buf, cap, &e) == 0;
}

/* The value of a line "\nkey: N kB", in bytes. */
static uint64_t field(const char *text, const char *key) {
    const char *at = strstr(text, key);
    return at ? strtoull(at + strlen(key), NULL, 10) * 1024 : 0;
}

static uint64_t less(uint64_t a, uint64_t b) {
    return a > b ? a - b : 0;
}

static uint64_t most(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

/* Returns what of it is shared memory. */
static uint64_t add_resident(const char *pid, pid_t kernel, struct watch_look *to) {
    char text[4096];
    if (!read_proc(pid, "status", text, sizeof text))
        return 0;
    uint64_t shared = field(text, "\nRssShmem:");
    to->resident += field(text, "\nRssAnon:") + field(text, "\nVmSwap:") + shared;
    to->file += field(text, "\nRssFile:");
    if (strtol(pid, NULL, 10) == kernel)
        to->highest = field(text, "\nVmHWM:");
    return shared;
}

/* Clean pages are those of files. A page of a shared mapping may be dirty and one's own as well;
 * how many are is not told, so all of them are taken off. */
static void add_details(const char *pid, uint64_t shared, struct watch_look *to) {
    char text[4096];
    if (!read_proc(pid, "smaps_rollup", text, sizeof text))
        return;
    to->own += less(field(text, "\nPrivate_Dirty:"), shared) + field(text, "\nSwap:");
    to->anon += field(text, "\nPss_Anon:") + field(text, "\nSwapPss:");
    to->shared += field(text, "\nPss_Shmem:");
}

/* User and system time of the process, or of the children it has waited for. */
static uint64_t stat_us(const char *pid, bool children) {
    char text[1024];
    unsigned long long t[4];
    const char *p = read_proc(pid, "stat", text, sizeof text) ? strrchr(text, ')') : NULL;
    if (!p || sscanf(p + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu",
                     &t[0], &t[1], &t[2], &t[3]) != 4)
        return 0;
    uint64_t ticks = children ? t[2] + t[3] : t[0] + t[1];
    return ticks * 1000000u / (uint64_t)sysconf(_SC_CLK_TCK);
}

/* Of the process, whose clock is finer than stat, and of the children it has waited for. */
static uint64_t cpu_us(const char *pid) {
    clockid_t clock;
    struct timespec t;
    uint64_t own_us;
    if (clock_getcpuclockid((pid_t)strtol(pid, NULL, 10), &clock) == 0 &&
        clock_gettime(clock, &t) == 0)
        own_us = (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
    else
        own_us = stat_us(pid, false);
    return own_us + stat_us(pid, true);
}

static struct watch_look look(pid_t kernel, bool details) {
    struct watch_look to = {.cpu_us = stat_us("1", true)}; /* orphans that we reaped */
    DIR *d = opendir("/proc");
    if (!d)
        return to;
    for (struct dirent *ent; (ent = readdir(d));) {
        if (ent->d_name[0] < '1' || ent->d_name[0] > '9' || strcmp(ent->d_name, "1") == 0)
            continue;
        uint64_t shared = add_resident(ent->d_name, kernel, &to);
        if (details)
            add_details(ent->d_name, shared, &to);
        to.cpu_us += cpu_us(ent->d_name);
    }
    closedir(d);
    return to;
}

/* A look takes its time. Who forks meanwhile is seen with pages of its own, and its children after
 * that with their shares of the same. So what is too much has to be so more than once. */
static struct watch_look look_closely(pid_t kernel, uint64_t enough) {
    struct watch_look least = look(kernel, true);
    for (int i = 1; i < LOOKS && most(least.own, least.anon) > enough; i++) {
        struct watch_look next = look(kernel, true);
        if (most(next.own, next.anon) < most(least.own, least.anon))
            least = next;
    }
    return least;
}

/* ---- memory outside of processes ---- */

/* The descriptors of many processes lead to few files: each counts once. */
struct loose {
    dev_t memfd_dev;
    uint64_t bytes;
    unsigned n;
    ino_t seen[MAX_LOOSE]; /* hash table, 0: free */
};

static bool is_new(struct loose *l, ino_t ino) {
    unsigned at = (unsigned)(ino * 2654435761u) % MAX_LOOSE;
    while (l->seen[at] && l->seen[at] != ino)
        at = (at + 1) % MAX_LOOSE;
    if (l->seen[at] == ino || l->n == MAX_LOOSE / 2)
        return false;
    l->seen[at] = ino;
    l->n++;
    return true;
}

static void add_descriptors(struct loose *l, const char *pid) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%.16s/fd", pid);
    DIR *d = opendir(path);
    if (!d)
        return;
    for (struct dirent *ent; (ent = readdir(d));) {
        struct stat st;
        if (ent->d_name[0] != '.' && fstatat(dirfd(d), ent->d_name, &st, 0) == 0 &&
            S_ISREG(st.st_mode) && st.st_dev == l->memfd_dev && is_new(l, st.st_ino))
            l->bytes += (uint64_t)st.st_blocks * 512;
    }
    closedir(d);
}

/* The last two columns of /proc/sysvipc/shm are bytes in memory and in swap. */
static uint64_t system_v_bytes(void) {
    FILE *f = fopen("/proc/sysvipc/shm", "re");
    uint64_t sum = 0;
    char line[512];
    if (!f)
        return 0;
    while (fgets(line, sizeof line, f)) {
        unsigned long long rss, swap;
        if (sscanf(line, " %*d %*d %*o %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %llu %llu", &rss,
                   &swap) == 2)
            sum += rss + swap;
    }
    fclose(f);
    return sum;
}

static uint64_t loose_bytes(void) {
    static struct loose l;
    AUTO_FD memfd = memfd_create("which", MFD_CLOEXEC);
    struct stat st;
    DIR *d = opendir("/proc");
    if (!d || memfd < 0 || fstat(memfd, &st) < 0) {
        if (d)
            closedir(d);
        return 0;
    }
    if (l.n)
        memset(l.seen, 0, sizeof l.seen);
    l.memfd_dev = st.st_dev;
    l.bytes = l.n = 0;
    for (struct dirent *ent; (ent = readdir(d));) {
        if (ent->d_name[0] >= '1' && ent->d_name[0] <= '9' && strcmp(ent->d_name, "1") != 0)
            add_descriptors(&l, ent->d_name);
    }
    closedir(d);
    return l.bytes + system_v_bytes();
}

static uint64_t tmpfs_bytes(void) {
    static const char *const places[] = {"/workspace", "/tmp", "/dev/shm"};
    uint64_t sum = 0;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        struct statfs f;
        if (statfs(places[i], &f) == 0)
            sum += (uint64_t)(f.f_blocks - f.f_bfree) * (uint64_t)f.f_bsize;
    }
    return sum;
}

/* ---- the watcher ---- */

void watch_limits(struct watcher *w, pid_t kernel, uint32_t memory_mb, uint32_t cpu_seconds) {
    fd_close(&w->timer);
    struct watch_look now = look(kernel, true);
    *w = (struct watcher){.kernel = kernel,
                          .start = now,
                          .last = now,
                          .baseline = now.own,
                          .forgivable = less(now.resident, now.own),
                          .resident_seen = now.resident,
                          .memory_max = (uint64_t)memory_mb << 20,
                          .cpu_max_us = (uint64_t)cpu_seconds * 1000000u};
    w->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    const struct timespec every = {.tv_nsec = WATCH_MS * 1000000};
    const struct itimerspec spec = {.it_interval = every, .it_value = every};
    timerfd_settime(w->timer, 0, &spec, NULL);
}

static void forgive_leap(struct watcher *w, const struct watch_look *now) {
    uint64_t rise = less(now->own, w->last.own);
    uint64_t leap = less(rise, less(now->resident, w->last.resident));
    if (leap <= LEAP)
        return;
    if (leap > w->forgivable)
        leap = w->forgivable;
    w->forgivable -= leap;
    w->baseline += leap;
}

/* What the program has now. */
static uint64_t memory_bytes(struct watcher *w, const struct watch_look *now) {
    forgive_leap(w, now);
    w->last = *now;
    uint64_t anon = most(less(now->own, w->baseline), less(now->anon, w->start.resident));
    return anon + w->loose + less(now->shared, w->loose + tmpfs_bytes());
}

static uint64_t measure(struct watcher *w, bool all) {
    struct watch_look now = look(w->kernel, false);
    if (all || w->ticks++ % LOOSE_TICKS == 0)
        w->loose = loose_bytes();
    uint64_t bytes = 0;
    if (all || now.resident + w->loose > w->memory_max || w->loose > w->memory_peak ||
        now.resident > w->resident_seen + RISE) {
        w->resident_seen = most(w->resident_seen, now.resident);
        now = look_closely(w->kernel, w->memory_max ? w->memory_max : UINT64_MAX);
        bytes = memory_bytes(w, &now);
        w->memory_peak = most(w->memory_peak, bytes);
    }
    w->cpu_us = most(w->cpu_us, less(now.cpu_us, w->start.cpu_us));
    if (all) /* a peak between two looks; pages of files come and go for others' sake */
        w->memory_peak = most(w->memory_peak,
                              less(now.highest, w->start.resident + most(now.file, w->start.file)));
    return bytes;
}

enum limit_kind watch_tick(struct watcher *w) {
    uint64_t fired;
    (void)!read(w->timer, &fired, sizeof fired);
    uint64_t bytes = measure(w, false);
    if (w->memory_max && bytes > w->memory_max)
        return fd_close(&w->timer), LIMIT_MEMORY;
    if (w->cpu_max_us && w->cpu_us > w->cpu_max_us)
        return fd_close(&w->timer), LIMIT_CPU;
    return LIMIT_NONE;
}

struct watch_usage watch_usage(struct watcher *w) {
    measure(w, true);
    return (struct watch_usage){.memory_peak = w->memory_peak, .cpu_us = w->cpu_us};
}
