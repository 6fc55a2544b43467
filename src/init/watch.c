/* See watch.h. Two looks: statm is cheap and counts anonymous memory that may still be shared with
 * the zygote, so it is an upper bound; only when that bound passes half the limit is smaps_rollup
 * read, which walks the page tables but tells what is really private. tmpfs files are bounded by
 * their own quota and not counted. */

#include "init/watch.h"

#include "base/fd.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define WATCH_MS 20

struct sum {
    uint64_t upper, exact, cpu_us;
};

/* /proc is mounted with hidepid, which does not hide anything from us: we hold CAP_SYS_PTRACE here.
 */
static int read_proc(const char *pid, const char *name, char *buf, size_t cap) {
    char path[64];
    struct err e;
    snprintf(path, sizeof path, "/proc/%.16s/%s", pid, name);
    return file_read_at(AT_FDCWD, path, buf, cap, &e);
}

static uint64_t upper_bytes(const char *pid) {
    char text[128];
    unsigned long long size, resident, shared;
    if (read_proc(pid, "statm", text, sizeof text) < 0 ||
        sscanf(text, "%llu %llu %llu", &size, &resident, &shared) != 3 || shared > resident)
        return 0;
    return (resident - shared) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t exact_bytes(const char *pid) {
    static const char *const keys[] = {"\nPrivate_Clean:", "\nPrivate_Dirty:", "\nSwap:"};
    char text[4096];
    if (read_proc(pid, "smaps_rollup", text, sizeof text) < 0)
        return 0;
    uint64_t kb = 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *at = strstr(text, keys[i]);
        kb += at ? strtoull(at + strlen(keys[i]), NULL, 10) : 0;
    }
    return kb * 1024;
}

/* User and system time of the process and of the children it has waited for. */
static uint64_t cpu_us(const char *pid) {
    char text[1024];
    if (read_proc(pid, "stat", text, sizeof text) < 0)
        return 0;
    const char *p = strrchr(text, ')');
    unsigned long long t[4];
    if (!p || sscanf(p + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu",
                     &t[0], &t[1], &t[2], &t[3]) != 4)
        return 0;
    return (t[0] + t[1] + t[2] + t[3]) * 1000000u / (uint64_t)sysconf(_SC_CLK_TCK);
}

static struct sum look(bool exact) {
    struct sum s = {0};
    DIR *d = opendir("/proc");
    if (!d)
        return s;
    for (struct dirent *ent; (ent = readdir(d));) {
        if (ent->d_name[0] < '1' || ent->d_name[0] > '9' || strcmp(ent->d_name, "1") == 0)
            continue;
        s.upper += upper_bytes(ent->d_name);
        if (exact)
            s.exact += exact_bytes(ent->d_name);
        s.cpu_us += cpu_us(ent->d_name);
    }
    closedir(d);
    return s;
}

void watch_limits(struct watcher *w, uint32_t memory_mb, uint32_t cpu_seconds) {
    w->memory_max = (uint64_t)memory_mb << 20;
    w->cpu_max_us = (uint64_t)cpu_seconds * 1000000u;
    struct sum now = look(true);
    w->baseline = now.exact;
    w->cpu_base_us = now.cpu_us;
    fd_close(&w->timer);
    w->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    const struct timespec every = {.tv_nsec = WATCH_MS * 1000000};
    const struct itimerspec spec = {.it_interval = every, .it_value = every};
    timerfd_settime(w->timer, 0, &spec, NULL);
}

static struct sum measure(struct watcher *w) {
    struct sum s = look(false);
    if (s.upper > w->memory_max / 2)
        s = look(true);
    uint64_t above = s.exact > w->baseline ? s.exact - w->baseline : 0;
    if (above > w->memory_peak)
        w->memory_peak = above;
    if (s.cpu_us > w->cpu_base_us && s.cpu_us - w->cpu_base_us > w->cpu_us)
        w->cpu_us = s.cpu_us - w->cpu_base_us;
    s.exact = above;
    return s;
}

enum limit_kind watch_tick(struct watcher *w) {
    uint64_t fired;
    (void)!read(w->timer, &fired, sizeof fired);
    struct sum s = measure(w);
    if (w->memory_max && s.exact > w->memory_max)
        return fd_close(&w->timer), LIMIT_MEMORY;
    if (w->cpu_max_us && w->cpu_us > w->cpu_max_us)
        return fd_close(&w->timer), LIMIT_CPU;
    return LIMIT_NONE;
}

struct watch_usage watch_usage(struct watcher *w) {
    struct sum s = look(true);
    uint64_t above = s.exact > w->baseline ? s.exact - w->baseline : 0;
    if (above > w->memory_peak)
        w->memory_peak = above;
    if (s.cpu_us > w->cpu_base_us + w->cpu_us)
        w->cpu_us = s.cpu_us - w->cpu_base_us;
    return (struct watch_usage){.memory_peak = w->memory_peak, .cpu_us = w->cpu_us};
}
