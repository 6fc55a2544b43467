/* What it costs us to hear the kernels of a sandbox, and to read what its kernels and commands
 * print: the sandbox pays for it (cpu_account.c, group.c), and is not heard again before it has
 * rested for some times as long (rest.c). A few large messages are heard at once; who goes on like
 * that gets about a fifth of a processor, for all its kernels and commands together, and the less,
 * the more sandboxes of one tenant do it.
 *
 * SECURITY: to hear a large message takes us longer than it takes to say, and a kernel that is not
 * ours any more may say anything. */

#include "engine/process/pace.h"

#include "engine/process/live_state.h"
#include "engine/process/process.h"

static void hear_all(struct live *l, bool on) {
    for (struct process *p = l->processes; p; p = p->next) {
        if (p->state == PROCESS_READY && p->kind->hear)
            p->kind->hear(p->owner, on);
    }
}

static void read_all(struct live *l, bool on) {
    for (struct process *p = l->processes; p; p = p->next) {
        if (p->kind->read)
            p->kind->read(p->owner, on);
    }
}

bool pace_rests(const struct live *l) {
    return l->hearings || rest_is_on(&l->rest);
}

static void pace_on_rested(struct rest *r) {
    read_all(r->arg, true);
    pace_go_on(r->arg);
}

void pace_init(struct live *l) {
    l->rest = (struct rest){.engine = l->engine, .on_rested = pace_on_rested, .arg = l};
}

void pace_end(struct live *l) {
    rest_end(&l->rest);
}

void pace_hold(struct live *l) {
    hear_all(l, false);
}

void pace_go_on(struct live *l) {
    if (l->state == LIVE_RUNNING && !pace_rests(l))
        hear_all(l, true);
}

void pace_heard(struct live *l, struct process *p, uint64_t cpu_ns) {
    l->heard_ns += cpu_ns;
    if (p)
        p->heard_ns += cpu_ns;
    l->rest.tenant = l->req.tenant;
    if (l->state != LIVE_RUNNING || !rest_after(&l->rest, cpu_ns))
        return;
    hear_all(l, false);
    read_all(l, false);
}

void pace_served(struct live *l, uint64_t cpu_ns) {
    l->heard_ns += cpu_ns;
}

uint64_t pace_cpu_us(const struct live *l) {
    return cgroup_fds_cpu_us(l->sandbox->cgroup) + l->heard_ns / 1000u;
}
