/* The machine's memory. Limits may be promised many times over, for most programs use little of
 * theirs; so what counts is what those under way have used so far (their peak, as the control group
 * tells), at least RESERVE for one that has only begun, and the files that the server wrote onto
 * their disks, which the kernel counts as the server's, and what the server holds for them:
 * requests (lent.h) and what they have printed and shown (kept.h). A program begins when it fits in
 * with that; otherwise it waits in its queue. Where there are no control groups nobody measures:
 * the limit counts, and all that is on the disk.
 *
 * The charge of a program only grows: it is given back when the sandbox is gone, which is when the
 * kernel has the memory again. A live sandbox may stay for days, so it counts with what it has now.
 * Which of the files on its disk the server wrote, nobody can tell later: it counts with as many
 * bytes as the server has written, and never with more than were there at any look since. So what
 * the sandbox deletes is given back at the next look, and nothing that it does makes a file of the
 * server's count less than it takes.
 *
 * What a program takes after it has begun is not held up, only its own limit does that; what the
 * server would write for it is refused before it is written. */

#include "engine/core/budget.h"

#include "base/clock.h"
#include "engine/core/engine.h"
#include "engine/core/sandbox.h"
#include "engine/core/stage.h"

#include <string.h>
#include <sys/stat.h>

#define RESERVE    (32ull << 20)
#define FRESH_NS   10000000u /* how old a measurement may be */
#define PAGE       4096u     /* of a tmpfs */
#define MIB(bytes) ((unsigned)(((bytes) + (1u << 20) - 1) >> 20))

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static uint64_t bytes_of_files(const struct input_file *inputs, unsigned n) {
    uint64_t sum = 0;
    for (unsigned i = 0; i < n; i++) {
        struct stat st;
        if (inputs[i].bytes)
            sum += inputs[i].size;
        else if (fstat(inputs[i].fd, &st) == 0 && st.st_size > 0)
            sum += (uint64_t)st.st_size;
    }
    return sum;
}

/* What a program counts that has used so much. */
static uint64_t charge(const struct engine *g, const struct limits *l, uint64_t files_bytes,
                       uint64_t used) {
    uint64_t limit = (uint64_t)l->memory_mb << 20;
    uint64_t least = g->no_groups ? limit : smaller(RESERVE, limit);
    return (used > least ? used : least) + files_bytes;
}

static bool stays(const struct sandbox *s) {
    return s->pool->config->live;
}

static uint64_t used(const struct sandbox *s) {
    return stays(s) ? cgroup_fds_memory(s->cgroup) : cgroup_fds_memory_peak(s->cgroup);
}

static void recharge(struct sandbox *s, uint64_t bytes) {
    if (bytes < s->charge && !stays(s))
        return;
    s->engine->charged = s->engine->charged - s->charge + bytes;
    s->charge = bytes;
}

/* What is reserved for files that are still to be copied in stays reserved. */
static void look_at_files(struct sandbox *s) {
    if (!s->staged)
        return;
    uint64_t there = sandbox_disk_bytes(s);
    s->files_bytes = s->engine->no_groups ? there : smaller(s->files_bytes, there);
}

static void measure(struct engine *g) {
    uint64_t now = now_ns();
    if (now - g->measured_ns < FRESH_NS)
        return;
    g->measured_ns = now;
    for (struct sandbox *s = g->sandboxes; s; s = s->next) {
        const struct guest *who = s->guest;
        if (!who)
            continue;
        look_at_files(s);
        /* What is kept is inside of what one counts with at least, where that is no whole limit. */
        uint64_t kept = who->kept.bytes, on_top = g->no_groups ? kept : 0;
        recharge(s,
                 charge(g, who->limits,
                        on_top + s->files_bytes + s->lent_bytes + s->stdin_bytes + network_bytes(s),
                        used(s) + kept - on_top));
    }
}

static uint64_t budget_of(const struct engine *g) {
    return (uint64_t)g->config.memory_budget_mb << 20;
}

int budget_check(const struct engine *g, const struct limits *l, const struct input_file *inputs,
                 unsigned n, uint64_t *files, struct err *e) {
    *files += bytes_of_files(inputs, n);
    uint64_t least = charge(g, l, *files, 0);
    if (budget_of(g) && least > budget_of(g))
        return err_user(e, "limit_too_high",
                        "the program needs at least %u MB, %u of them for its files, and this "
                        "engine's memory budget is %u MB",
                        MIB(least), MIB(*files), g->config.memory_budget_mb);
    return 0;
}

bool budget_lets(struct engine *g, const struct limits *l, uint64_t files_bytes) {
    if (budget_of(g) == 0)
        return true;
    measure(g);
    return g->charged + charge(g, l, files_bytes, 0) <= budget_of(g);
}

bool budget_is_greedy(const struct engine *g, const struct guest *who, unsigned tenants) {
    uint64_t sum = charge(g, who->limits, who->files_bytes, 0);
    for (const struct sandbox *s = g->sandboxes; s; s = s->next) {
        if (s->guest && strcmp(s->guest->tenant, who->tenant) == 0)
            sum += s->charge;
    }
    return sum > budget_of(g) / tenants;
}

void budget_take(struct sandbox *s, const struct guest *who) {
    s->files_bytes = s->written_bytes = who->files_bytes;
    recharge(s, charge(s->engine, who->limits, who->files_bytes, 0));
}

void budget_staged(struct sandbox *s) {
    s->staged = true;
}

void budget_inherit(struct sandbox *s, const struct guest *who) {
    s->files_bytes = sandbox_disk_bytes(s);
    s->staged = true;
    recharge(s, charge(s->engine, who->limits, s->files_bytes, used(s)));
}

int budget_fits(struct engine *g, uint64_t bytes, struct err *e) {
    if (budget_of(g) == 0)
        return 0;
    measure(g);
    if (bytes <= budget_of(g) && g->charged <= budget_of(g) - bytes)
        return 0;
    return err_user(e, "memory_budget",
                    "there is no memory for %llu bytes more: of this engine's memory budget of %u "
                    "MB %u MB are in use",
                    (unsigned long long)bytes, g->config.memory_budget_mb, MIB(g->charged));
}

int budget_write(struct sandbox *s, uint64_t bytes, struct err *e) {
    uint64_t whole = (bytes + PAGE - 1) / PAGE * PAGE; /* the next look tells it better */
    if (budget_fits(s->engine, whole, e) < 0)
        return -1;
    s->files_bytes += whole;
    s->written_bytes += whole;
    recharge(s, s->charge + whole);
    return 0;
}

void budget_settle(struct sandbox *s) {
    if (s->charge && budget_of(s->engine))
        recharge(s, used(s) + s->files_bytes);
}

void budget_give(struct sandbox *s) {
    s->engine->charged -= s->charge;
    s->charge = 0;
}

/* SECURITY: a file of one sandbox can live on in a descriptor of another, through a directory that
 * both may write to. Nobody's control group has it then. */
void budget_stranded(struct engine *g, struct wire_in *in) {
    struct w_stranded m;
    struct err e;
    if (w_stranded_get(in, &m, &e) < 0)
        return;
    g->charged += m.bytes - g->stranded_bytes;
    g->stranded_bytes = m.bytes;
}
