/* What it costs us to hear the kernels of a sandbox, and to read what its kernels and commands
 * print: the sandbox pays for it (cpu_account.c, group.c), and is not heard again before it has
 * rested for some times as long (rest.c). A few large messages are heard at once; who goes on like
 * that gets about a fifth of a processor, for all its kernels and commands together, and the less,
 * the more sandboxes of one tenant do it.
 *
 * SECURITY: to hear a large message takes us longer than it takes to say, and a kernel that is not
 * ours any more may say anything. */

#include "engine/live/pace.h"

#include "engine/live/cell.h"
#include "engine/live/command.h"
#include "engine/live/internal.h"
#include "engine/live/kernel.h"
#include "engine/live/process.h"

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
    return l->hearings || rest_is_on(&l->rest);
}

static void rest_outputs(struct output out[2], bool rest) {
    output_hold(&out[0], HOLD_REST, rest);
    output_hold(&out[1], HOLD_REST, rest);
}

static void rest_all_outputs(struct live *l, bool rest) {
    for (struct kernel *k = l->kernels; k; k = k->next)
        rest_outputs(k->out, rest);
    for (struct command *c = l->commands; c; c = c->next)
        rest_outputs(c->out, rest);
}

static void pace_on_rested(struct rest *r) {
    rest_all_outputs(r->arg, false);
    pace_go_on(r->arg);
}

void pace_init(struct live *l) {
    l->rest = (struct rest){.engine = l->engine, .on_rested = pace_on_rested, .arg = l};
}

void pace_end(struct live *l) {
    rest_end(&l->rest);
}

void pace_hold(struct live *l) {
    hold_all(l, true);
}

void pace_go_on(struct live *l) {
    if (l->state == LIVE_RUNNING && !pace_rests(l))
        hold_all(l, false);
}

void pace_heard(struct live *l, struct process *p, uint64_t cpu_ns) {
    l->heard_ns += cpu_ns;
    if (p)
        p->heard_ns += cpu_ns;
    l->rest.tenant = live_tenant(l);
    if (l->state != LIVE_RUNNING || !rest_after(&l->rest, cpu_ns))
        return;
    hold_all(l, true);
    rest_all_outputs(l, true);
}

uint64_t pace_cpu_us(const struct live *l) {
    return cgroup_fds_cpu_us(l->sandbox->cgroup) + l->heard_ns / 1000u;
}
