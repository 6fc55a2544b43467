/* See watch_look.h.
 *
 * status is cheap. smaps_rollup walks the page tables: a program that maps much, in many processes,
 * can have a pass over all of them take seconds. So a pass is a directory of /proc that stays open
 * from one part to the next, and between the parts there are cheap looks. */

#include "init/watch_look.h"

#include "base/clock.h"
#include "base/fd.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PASSES      3 /* over what is too much */
#define THREAD_NAME 40

/* /proc is mounted with hidepid, which does not hide anything from us: we hold CAP_SYS_PTRACE here.
 */
static bool read_proc(const char *thread, const char *name, char *buf, size_t cap) {
    char path[64];
    struct err e;
    snprintf(path, sizeof path, "/proc/%.40s/%s", thread, name);
    return file_read_at(AT_FDCWD, path, buf, cap, &e) == 0;
}

/* The value of a line "\nkey: N". */
static uint64_t number(const char *text, const char *key) {
    const char *at = strstr(text, key);
    return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

uint64_t watch_field(const char *text, const char *key) {
    return number(text, key) * 1024;
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

struct one {
    char thread[THREAD_NAME];
    uint64_t anon, shared;
    unsigned tasks;
};

static struct one add_resident(const char *pid, pid_t kernel, struct watch_look *to) {
    struct one p = {0};
    char text[4096];
    if (!find_thread(pid, p.thread, text, sizeof text))
        return p;
    p.tasks = (unsigned)number(text, "\nThreads:");
    to->tasks += p.tasks;
    p.shared = watch_field(text, "\nRssShmem:");
    p.anon = watch_field(text, "\nRssAnon:") + watch_field(text, "\nVmSwap:");
    to->resident += p.anon + p.shared;
    to->largest = most(to->largest, p.anon);
    to->file += watch_field(text, "\nRssFile:");
    to->tables += watch_field(text, "\nVmPTE:");
    if (strtol(pid, NULL, 10) == kernel)
        to->highest = watch_field(text, "\nVmHWM:");
    return p;
}

/* Clean pages are those of files. A page of a shared mapping may be dirty and one's own as well;
 * how many are is not told, so all of them are taken off. */
static void add_details(const struct one *p, struct watch_look *to) {
    char text[4096];
    if (!read_proc(p->thread, "smaps_rollup", text, sizeof text))
        return;
    to->own +=
        less(watch_field(text, "\nPrivate_Dirty:"), p->shared) + watch_field(text, "\nSwap:");
    to->anon += watch_field(text, "\nPss_Anon:") + watch_field(text, "\nSwapPss:");
    to->shared += watch_field(text, "\nPss_Shmem:");
}

/* The next process but ourselves; NULL: there are no more. */
static const char *next_process(DIR *d) {
    for (struct dirent *ent; (ent = readdir(d));) {
        if (ent->d_name[0] >= '1' && ent->d_name[0] <= '9' && strcmp(ent->d_name, "1") != 0)
            return ent->d_name;
    }
    return NULL;
}

struct watch_look watch_look(pid_t kernel, unsigned most, struct cpu_look *cpu) {
    struct watch_look to = {0};
    DIR *d = opendir("/proc");
    for (const char *pid; d && most-- > 0 && (pid = next_process(d));) {
        struct one p = add_resident(pid, kernel, &to);
        cpu_add(cpu, pid, p.anon, p.tasks);
    }
    if (d)
        closedir(d);
    return to;
}

/* True: the pass is over. */
static bool pass_go_on(struct watch_round *r, pid_t kernel, uint64_t until_ns) {
    if (!r->dir) {
        r->sum = (struct watch_look){0};
        r->seen = 0;
    }
    if (!r->dir && !(r->dir = opendir("/proc")))
        return true;
    for (const char *pid; r->seen++ < r->most && (pid = next_process(r->dir));) {
        struct one p = add_resident(pid, kernel, &r->sum);
        add_details(&p, &r->sum);
        if (now_ns() >= until_ns)
            return false;
    }
    closedir(r->dir);
    r->dir = NULL;
    return true;
}

static uint64_t weight(const struct watch_look *l) {
    return most(l->own, l->anon);
}

/* A pass takes its time. Who forks meanwhile is seen with pages of its own, and its children after
 * that with their shares of the same. So what is too much has to be so more than once. */
bool round_go_on(struct watch_round *r, pid_t kernel, uint64_t enough, uint64_t until_ns) {
    while (pass_go_on(r, kernel, until_ns)) {
        if (r->passes == 0 || weight(&r->sum) < weight(&r->least))
            r->least = r->sum;
        if (++r->passes == PASSES || weight(&r->least) <= enough) {
            r->passes = 0;
            return true;
        }
        if (now_ns() >= until_ns)
            return false;
    }
    return false;
}

bool round_is_on(const struct watch_round *r) {
    return r->dir || r->passes;
}

void round_drop(struct watch_round *r) {
    if (r->dir)
        closedir(r->dir);
    *r = (struct watch_round){.most = r->most};
}
