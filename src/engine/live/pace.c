/* What it costs us to hear the kernels of a sandbox: the sandbox pays for it (cpu_account.c,
 * group.c), and is not heard again before it has rested for some times as long. A few large
 * messages are heard at once; who goes on like that gets about a fifth of a processor, for all its
 * kernels together, and the less, the more sandboxes of one tenant do it.
 *
 * SECURITY: to hear a large message takes us longer than it takes to say, and a kernel that is not
 * ours any more may say anything. */

#include "engine/live/pace.h"

#include "base/clock.h"
#include "engine/live/cell.h"
#include "engine/live/internal.h"
#include "engine/live/kernel.h"
#include "engine/live/lives.h"
#include "engine/live/process.h"

#include <string.h>

#define REST    4          /* times as long as hearing it took */
#define AT_ONCE 200000000u /* ns of hearing without any rest */

/* Those that were told to be kernels; the others have something to say before that. */
static void hold_all(struct live *l, bool hold) {
    for (struct kernel *k = l->kernels; k; k = k->next) {
        if (!k->begun || k->process.state != PROCESS_READY)
            continue;
        if (hold)
            chan_pause(k->process.ctl);
        else if (!k->running || !k->running->held || k->running->stop != STOP_NONE)
            kernel_hold(k, false);
    }
}

bool pace_rests(const struct live *l) {
    return l->hearings || l->rest.place;
}

static void pace_on_rested(struct timer *t) {
    struct live *l = t->arg;
    l->tired_ns = AT_ONCE;
    l->tired_at_ns = now_ns();
    pace_go_on(l);
}

void pace_init(struct live *l) {
    l->rest = (struct timer){.fn = pace_on_rested, .arg = l};
}

void pace_end(struct live *l) {
    loop_timer_stop(l->engine->loop, &l->rest);
}

void pace_hold(struct live *l) {
    hold_all(l, true);
}

void pace_go_on(struct live *l) {
    if (l->state == LIVE_RUNNING && !pace_rests(l))
        hold_all(l, false);
}

static unsigned count_resting(const struct live *of) {
    unsigned n = 0;
    for (const struct live *l = of->engine->lives->first; l; l = l->next)
        n += l != of && l->rest.place && strcmp(live_tenant(l), live_tenant(of)) == 0;
    return n;
}

void pace_heard(struct live *l, struct process *p, uint64_t cpu_ns) {
    uint64_t now = now_ns(), rested = (now - l->tired_at_ns) / REST;
    l->heard_ns += cpu_ns;
    if (p)
        p->heard_ns += cpu_ns;
    l->tired_ns = (l->tired_ns > rested ? l->tired_ns - rested : 0) + cpu_ns;
    l->tired_at_ns = now;
    if (l->tired_ns <= AT_ONCE || l->state != LIVE_RUNNING)
        return;
    hold_all(l, true);
    loop_timer(l->engine->loop, &l->rest,
               now + (l->tired_ns - AT_ONCE) * REST * (1 + count_resting(l)));
}

uint64_t pace_cpu_us(const struct live *l) {
    return cgroup_fds_cpu_us(l->sandbox->cgroup) + l->heard_ns / 1000u;
}
