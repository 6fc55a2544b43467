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
 * A look is cheap and tells what is resident. A round of details follows when the limit could be
 * reached or the peak has risen; it is taken in parts (watch_look.h). Meanwhile it is sure that a
 * program has no less than what one process has beyond all that it can have inherited, and no less
 * than what the last round found and every process has grown by since. When that is far above the
 * limit, nobody waits for a round. (Two processes can have one memory, between vfork and exec, and
 * both are seen to grow: hence far.) */

#include "init/watch.h"

#include "base/clock.h"
#include "base/fd.h"

#include <signal.h>
#include <sys/random.h>
#include <sys/statfs.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define WATCH_MS 20          /* between two looks, on average */
#define ROUND_NS 20000000u   /* of a round, at each look */
#define LAST_NS  200000000u  /* for the round at the end */
#define LEAP     (64u << 20) /* more than a program can write to between two looks */
#define RISE     (1u << 20)  /* so much more resident is worth a look at the peak */
#define MORE     64          /* processes that a look goes on for beyond twice the limit */
#define NO_LIMIT 4096        /* likewise, where there is none */

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

/* SECURITY: processes that come and go as fast as they are looked at would make a look endless. It
 * goes by pid, so whoever was there when it began is seen before them. */
static unsigned most_processes(const struct watch_plan *p) {
    return p->limits.pids ? 2 * p->limits.pids + MORE : NO_LIMIT;
}

static unsigned theirs(const struct watcher *w, unsigned tasks) {
    return *w->plan.usher && tasks ? tasks - 1 : tasks;
}

void watch_limits(struct watcher *w, const struct watch_plan *p) {
    fd_close(&w->timer);
    round_drop(&w->round);
    w->round.most = most_processes(p);
    (void)watch_look(p->kernel, w->round.most, cpu_begin(&w->cpu));
    cpu_start(&w->cpu);
    round_go_on(&w->round, p->kernel, UINT64_MAX, UINT64_MAX);
    struct watch_look now = w->round.least;
    w->plan = *p;
    w->start = w->last = now;
    w->start_rest = watch_kernel(*p->network).rest;
    w->held = (struct kernel_bytes){0};
    w->baseline = now.own;
    w->forgivable = less(now.resident, now.own);
    w->resident_seen = now.resident;
    w->memory_max = (uint64_t)p->limits.memory_mb << 20;
    w->tasks = theirs(w, now.tasks);
    w->memory_peak = w->anon = 0;
    w->grown = 0;
    w->is_on = true;
    w->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    set_timer(w);
}

void watch_change(struct watcher *w, const struct limits *next) {
    uint32_t cpu_seconds = w->plan.limits.cpu_seconds;
    w->plan.limits = *next;
    w->plan.limits.cpu_seconds = cpu_seconds; /* of a live sandbox's cells, each has its own */
    w->memory_max = (uint64_t)next->memory_mb << 20;
    w->round.most = most_processes(&w->plan);
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

/* What the kernel holds for this sandbox, beside what its processes map. */
static uint64_t held_bytes(const struct watcher *w, const struct watch_look *now) {
    return w->held.segments + less(w->held.rest, w->start_rest) +
           less(now->tables, w->start.tables);
}

/* What the program has, as the last round found it. */
static uint64_t round_bytes(struct watcher *w) {
    const struct watch_look *found = &w->round.least;
    forgive_leap(w, found);
    w->last = *found;
    w->anon = most(less(found->own, w->baseline), less(found->anon, w->start.resident));
    w->grown = 0;
    return w->anon + held_bytes(w, found) + less(found->shared, w->held.segments + tmpfs_bytes());
}

/* What the program has at the least, without a round. */
static uint64_t sure_bytes(const struct watcher *w, const struct watch_look *now) {
    uint64_t grown = w->grown > 0 ? w->anon + (uint64_t)w->grown : 0;
    return most(grown, less(now->largest, w->start.resident)) + held_bytes(w, now);
}

static struct watch_look look(struct watcher *w) {
    struct watch_look now = watch_look(w->plan.kernel, w->round.most, cpu_begin(&w->cpu));
    cpu_count(&w->cpu);
    w->grown += cpu_growth(&w->cpu);
    w->held = watch_kernel(*w->plan.network);
    w->tasks = theirs(w, now.tasks);
    return now;
}

static uint64_t measure(struct watcher *w) {
    struct watch_look now = look(w);
    uint64_t bytes = 0, held = held_bytes(w, &now), sure = sure_bytes(w, &now);
    bool due = now.resident + held > w->memory_max || held > w->memory_peak ||
               now.resident > w->resident_seen + RISE;
    if (w->memory_max && sure > w->memory_max + w->memory_max / 2) {
        bytes = sure;
    } else if (due || round_is_on(&w->round)) {
        w->resident_seen = most(w->resident_seen, now.resident);
        if (round_go_on(&w->round, w->plan.kernel, w->memory_max ? w->memory_max : UINT64_MAX,
                        now_ns() + ROUND_NS))
            bytes = round_bytes(w);
    }
    w->memory_peak = most(w->memory_peak, bytes);
    return bytes;
}

/* The newest first: the higher numbers, until they go round. Returns how many are still too many.
 */
static unsigned kill_newest(const struct watcher *w, bool entered, unsigned excess) {
    const struct cpu_look *now = &w->cpu.looks[w->cpu.which];
    for (unsigned i = now->n; i-- > 0 && excess > 0;) {
        const struct cpu_seen *one = &now->all[i];
        unsigned counted = one->tasks - (entered && one->tasks);
        if (procs_entered(w->plan.procs, one->pid) != entered || !counted ||
            one->pid == *w->plan.usher)
            continue;
        kill(one->pid, SIGKILL);
        excess -= counted < excess ? counted : excess;
    }
    return excess;
}

/* Each kernel and command can start no more than `pids` processes (RLIMIT_NPROC); all of them
 * together are looked at here. As with a control group, what enters is not refused: a kernel or
 * command itself does not count. Whoever was killed and has not gone yet is the newest again, and
 * nobody dies in its place. And who was about to enter at one look has done so at the next. */
static bool trim_processes(struct watcher *w) {
    unsigned entered = procs_alive(w->plan.procs);
    unsigned counted = w->tasks - (entered < w->tasks ? entered : w->tasks);
    bool again = w->crowded;
    w->crowded = w->plan.limits.pids && counted > w->plan.limits.pids;
    if (!w->crowded || !again)
        return false;
    unsigned left = kill_newest(w, false, counted - w->plan.limits.pids);
    kill_newest(w, true, left);
    return true;
}

/* All of them are killed. Those that come after them in a live sandbox are watched as they were. */
static void end_processes(struct watcher *w) {
    round_drop(&w->round);
    w->anon = 0;
    w->grown = 0;
    w->resident_seen = w->start.resident;
    if (w->plan.is_live)
        set_timer(w);
    else
        fd_close(&w->timer);
}

enum limit_kind watch_tick(struct watcher *w) {
    uint64_t fired;
    (void)!read(w->timer, &fired, sizeof fired);
    uint64_t bytes = measure(w);
    if (w->memory_max && bytes > w->memory_max)
        return end_processes(w), LIMIT_MEMORY;
    if (w->plan.limits.cpu_seconds &&
        w->cpu.used_us > (uint64_t)w->plan.limits.cpu_seconds * 1000000u)
        return end_processes(w), LIMIT_CPU;
    set_timer(w);
    return trim_processes(w) ? LIMIT_PIDS : LIMIT_NONE;
}

/* A peak between two looks shows in the kernel process's own; pages of files come and go for
 * others' sake. */
static void measure_last(struct watcher *w) {
    struct watch_look now = look(w);
    round_drop(&w->round);
    if (round_go_on(&w->round, w->plan.kernel, UINT64_MAX, now_ns() + LAST_NS))
        w->memory_peak = most(w->memory_peak, round_bytes(w));
    round_drop(&w->round);
    w->memory_peak =
        most(w->memory_peak, less(now.highest, w->start.resident + most(now.file, w->start.file)));
}

struct watch_usage watch_usage(struct watcher *w) {
    if (w->plan.network) /* else there was nothing to watch yet */
        measure_last(w);
    return (struct watch_usage){.memory_peak = w->memory_peak, .cpu_us = w->cpu.used_us};
}
