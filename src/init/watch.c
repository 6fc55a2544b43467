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
 * Memory outside of any process counts too: System V's, sockets (watch_kernel.c) and shared
 * mappings, and so do page tables, which an empty mapping has as well. Files on tmpfs do not: they
 * are bounded by their own quota, and so are a program's memfds, which are such files here
 * (answers.c).
 *
 * The time of the next look is drawn by lot, so that no program can be away when it comes.
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
#include <sys/random.h>
#include <sys/statfs.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define WATCH_MS 20          /* between two looks, on average */
#define LOOKS    3           /* at what is too much */
#define LEAP     (64u << 20) /* more than a program can write to between two looks */
#define RISE     (1u << 20)  /* so much more resident is worth a look at the peak */

#define THREAD_NAME 40

/* /proc is mounted with hidepid, which does not hide anything from us: we hold CAP_SYS_PTRACE here.
 */
static bool read_proc(const char *pid, const char *name, char *buf, size_t cap) {
    char path[64];
    struct err e;
    snprintf(path, sizeof path, "/proc/%.40s/%s", pid, name);
    return file_read_at(AT_FDCWD, path, buf, cap, &e) == 0;
}

/* The value of a line "\nkey: N". */
static uint64_t number(const char *text, const char *key) {
    const char *at = strstr(text, key);
    return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

/* The value of a line "\nkey: N kB", in bytes. */
static uint64_t field(const char *text, const char *key) {
    return number(text, key) * 1024;
}

static uint64_t less(uint64_t a, uint64_t b) {
    return a > b ? a - b : 0;
}

static uint64_t most(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

/* The name below /proc of a thread that has the process's memory: the process itself, but for one
 * whose first thread has ended. That one has no memory any more, whatever the others have. */
static bool find_thread(const char *pid, char name[THREAD_NAME], char *text, size_t cap) {
    snprintf(name, THREAD_NAME, "%.16s", pid);
    if (!read_proc(name, "status", text, cap))
        return false;
    if (strstr(text, "\nVmRSS:") || number(text, "\nThreads:") <= 1)
        return true;
    char path[64];
    snprintf(path, sizeof path, "/proc/%.16s/task", pid);
    DIR *d = opendir(path);
    bool found = false;
    for (struct dirent *ent; d && !found && (ent = readdir(d));) {
        snprintf(name, THREAD_NAME, "%.16s/task/%.16s", pid, ent->d_name);
        found = ent->d_name[0] != '.' && read_proc(name, "status", text, cap) &&
                strstr(text, "\nVmRSS:");
    }
    if (d)
        closedir(d);
    return found;
}

/* Returns what of it is shared memory; `name` is a thread's. */
static uint64_t add_resident(const char *pid, char name[THREAD_NAME], pid_t kernel,
                             struct watch_look *to) {
    char text[4096];
    if (!find_thread(pid, name, text, sizeof text))
        return 0;
    uint64_t shared = field(text, "\nRssShmem:");
    to->resident += field(text, "\nRssAnon:") + field(text, "\nVmSwap:") + shared;
    to->file += field(text, "\nRssFile:");
    to->tables += field(text, "\nVmPTE:");
    if (strtol(pid, NULL, 10) == kernel)
        to->highest = field(text, "\nVmHWM:");
    return shared;
}

/* Clean pages are those of files. A page of a shared mapping may be dirty and one's own as well;
 * how many are is not told, so all of them are taken off. */
static void add_details(const char *thread, uint64_t shared, struct watch_look *to) {
    char text[4096];
    if (!read_proc(thread, "smaps_rollup", text, sizeof text))
        return;
    to->own += less(field(text, "\nPrivate_Dirty:"), shared) + field(text, "\nSwap:");
    to->anon += field(text, "\nPss_Anon:") + field(text, "\nSwapPss:");
    to->shared += field(text, "\nPss_Shmem:");
}

/* `cpu` may be NULL. */
static struct watch_look look(pid_t kernel, bool details, struct cpu_look *cpu) {
    struct watch_look to = {0};
    DIR *d = opendir("/proc");
    if (!d)
        return to;
    for (struct dirent *ent; (ent = readdir(d));) {
        if (ent->d_name[0] < '1' || ent->d_name[0] > '9' || strcmp(ent->d_name, "1") == 0)
            continue;
        char thread[THREAD_NAME];
        uint64_t shared = add_resident(ent->d_name, thread, kernel, &to);
        if (details)
            add_details(thread, shared, &to);
        if (cpu)
            cpu_add(cpu, ent->d_name);
    }
    closedir(d);
    return to;
}

/* A look takes its time. Who forks meanwhile is seen with pages of its own, and its children after
 * that with their shares of the same. So what is too much has to be so more than once. */
static struct watch_look look_closely(pid_t kernel, uint64_t enough) {
    struct watch_look least = look(kernel, true, NULL);
    for (int i = 1; i < LOOKS && most(least.own, least.anon) > enough; i++) {
        struct watch_look next = look(kernel, true, NULL);
        if (most(next.own, next.anon) < most(least.own, least.anon))
            least = next;
    }
    return least;
}

/* The places that can be written to are one file system. */
static uint64_t tmpfs_bytes(void) {
    struct statfs f;
    if (statfs("/workspace", &f) < 0)
        return 0;
    return (uint64_t)(f.f_blocks - f.f_bfree) * (uint64_t)f.f_bsize;
}

static void set_timer(const struct watcher *w) {
    uint32_t lot = WATCH_MS;
    (void)!getrandom(&lot, sizeof lot, GRND_NONBLOCK);
    const struct itimerspec spec = {.it_value.tv_nsec = (WATCH_MS / 2) * 1000000 +
                                                        (long)(lot % (WATCH_MS * 1000)) * 1000};
    timerfd_settime(w->timer, 0, &spec, NULL);
}

void watch_limits(struct watcher *w, pid_t kernel, uint32_t memory_mb, uint32_t cpu_seconds,
                  const uint8_t *network) {
    fd_close(&w->timer);
    struct watch_look now = look(kernel, true, cpu_begin(&w->cpu));
    cpu_start(&w->cpu);
    w->kernel = kernel;
    w->network = network;
    w->start = w->last = now;
    w->start_rest = watch_kernel(*network).rest;
    w->held = (struct kernel_bytes){0};
    w->baseline = now.own;
    w->forgivable = less(now.resident, now.own);
    w->resident_seen = now.resident;
    w->memory_max = (uint64_t)memory_mb << 20;
    w->cpu_max_us = (uint64_t)cpu_seconds * 1000000u;
    w->memory_peak = 0;
    w->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    set_timer(w);
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

/* Of the kernel for this sandbox, and in no process's count. */
static uint64_t held_bytes(const struct watcher *w, const struct watch_look *now) {
    return w->held.segments + less(w->held.rest, w->start_rest) +
           less(now->tables, w->start.tables);
}

/* What the program has now. */
static uint64_t memory_bytes(struct watcher *w, const struct watch_look *now) {
    forgive_leap(w, now);
    w->last = *now;
    uint64_t anon = most(less(now->own, w->baseline), less(now->anon, w->start.resident));
    return anon + held_bytes(w, now) + less(now->shared, w->held.segments + tmpfs_bytes());
}

static uint64_t measure(struct watcher *w, bool all) {
    struct watch_look now = look(w->kernel, false, cpu_begin(&w->cpu));
    cpu_count(&w->cpu);
    w->held = watch_kernel(*w->network);
    uint64_t bytes = 0, held = held_bytes(w, &now);
    if (all || now.resident + held > w->memory_max || held > w->memory_peak ||
        now.resident > w->resident_seen + RISE) {
        w->resident_seen = most(w->resident_seen, now.resident);
        now = look_closely(w->kernel, w->memory_max ? w->memory_max : UINT64_MAX);
        bytes = memory_bytes(w, &now);
        w->memory_peak = most(w->memory_peak, bytes);
    }
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
    if (w->cpu_max_us && w->cpu.used_us > w->cpu_max_us)
        return fd_close(&w->timer), LIMIT_CPU;
    set_timer(w);
    return LIMIT_NONE;
}

struct watch_usage watch_usage(struct watcher *w) {
    if (w->network) /* else there was nothing to watch yet */
        measure(w, true);
    return (struct watch_usage){.memory_peak = w->memory_peak, .cpu_us = w->cpu.used_us};
}
