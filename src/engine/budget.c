/* The machine's memory. Limits may be promised many times over, for most programs use little of
 * theirs; so what counts is what those under way have used so far (their peak, as the control group
 * tells), at least RESERVE for one that has only begun, and the files that were copied in for it,
 * which the kernel counts as ours. A program begins when it fits in with that; otherwise it waits
 * in its queue. Where there are no control groups nobody measures, and its limit is what counts.
 *
 * A charge is the sandbox's and only grows: it is given back when the sandbox is gone, which is
 * when the kernel has the memory again, and which is the one event that waiting ones wait for. What
 * a program takes after it has begun is not held up, only its own limit does that. */

#include "engine/sandbox.h"

#include "base/clock.h"

#include <sys/stat.h>

#define RESERVE    (32ull << 20)
#define FRESH_NS   10000000u /* how old a measurement may be */
#define MIB(bytes) ((unsigned)(((bytes) + (1u << 20) - 1) >> 20))

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static uint64_t bytes_of_files(const struct run_input *inputs, unsigned n) {
    uint64_t sum = 0;
    for (unsigned i = 0; i < n; i++) {
        struct stat st;
        if (fstat(inputs[i].fd, &st) == 0 && st.st_size > 0)
            sum += (uint64_t)st.st_size;
    }
    return sum;
}

/* What a program counts that has used so much. */
static uint64_t charge(const struct engine *g, const struct config_limits *l, uint64_t files_bytes,
                       uint64_t used) {
    uint64_t limit = (uint64_t)l->memory_mb << 20;
    uint64_t least = g->no_groups ? limit : smaller(RESERVE, limit);
    return (used > least ? used : least) + files_bytes;
}

static void recharge(struct sandbox *s, uint64_t bytes) {
    if (bytes <= s->charge)
        return;
    s->engine->charged += bytes - s->charge;
    s->charge = bytes;
}

static void measure(struct engine *g) {
    uint64_t now = now_ns();
    if (now - g->measured_ns < FRESH_NS)
        return;
    g->measured_ns = now;
    for (struct sandbox *s = g->sandboxes; s; s = s->next) {
        const struct guest *who = s->guest;
        if (who)
            recharge(s, charge(g, who->limits, who->files_bytes, knobs_memory_peak(s->knobs)));
    }
}

static uint64_t budget_of(const struct engine *g) {
    return (uint64_t)g->config.memory_budget_mb << 20;
}

int budget_check(const struct engine *g, const struct config_limits *l,
                 const struct run_input *inputs, unsigned n, uint64_t *ret_files, struct err *e) {
    *ret_files = bytes_of_files(inputs, n);
    uint64_t least = charge(g, l, *ret_files, 0);
    if (budget_of(g) && least > budget_of(g))
        return err_user(e, "limit_too_high",
                        "the program needs at least %u MB, %u of them for its files, and this "
                        "engine's memory budget is %u MB",
                        MIB(least), MIB(*ret_files), g->config.memory_budget_mb);
    return 0;
}

bool budget_lets(struct engine *g, const struct config_limits *l, uint64_t files_bytes) {
    if (budget_of(g) == 0)
        return true;
    measure(g);
    return g->charged + charge(g, l, files_bytes, 0) <= budget_of(g);
}

void budget_take(struct sandbox *s, const struct guest *who) {
    recharge(s, charge(s->engine, who->limits, who->files_bytes, 0));
}

void budget_settle(struct sandbox *s) {
    if (s->charge && budget_of(s->engine))
        recharge(s, knobs_memory_peak(s->knobs));
}

void budget_give(struct sandbox *s) {
    s->engine->charged -= s->charge;
    s->charge = 0;
}
