/* The control group of a kernel in a live sandbox: the sandbox's, or one of its own below that,
 * when it has limits of its own. The warden makes that for each process anew, gives us its knobs,
 * and keeps it until we have read how the process ended. */

#include "engine/live/internal.h"

#include <stddef.h>

/* ---- limits ---- */

static const struct {
    const char *name;
    size_t offset;
} own_limits[] = {
    {"memory_mb", offsetof(struct config_limits, memory_mb)},
    {"cpus (percent)", offsetof(struct config_limits, cpus_percent)},
    {"pids", offsetof(struct config_limits, pids)},
};

/* The operator's, for a kernel that asks for nothing. */
static struct config_limits usual_limits(const struct live *l) {
    struct config_limits usual = l->engine->config.live_kernel;
    const struct config_limits *most = &l->req.limits;
    if (!knobs_there(l->sandbox->knobs))
        return (struct config_limits){0};
    if (usual.memory_mb > most->memory_mb)
        usual.memory_mb = most->memory_mb;
    if (usual.cpus_percent > most->cpus_percent)
        usual.cpus_percent = most->cpus_percent;
    return usual;
}

static bool wants_any(const struct config_limits *l) {
    return l && (l->memory_mb || l->cpus_percent || l->pids);
}

/* Limits of its own: those that are not given are the sandbox's. */
int group_settle(const struct live *l, const struct config_limits *want, struct config_limits *ret,
                 struct err *e) {
    struct config_limits usual = usual_limits(l);
    if (!wants_any(want))
        want = &usual;
    bool any = wants_any(want);
    *ret = l->req.limits;
    for (size_t i = 0; i < sizeof own_limits / sizeof *own_limits; i++) {
        uint32_t v = *(const uint32_t *)((const char *)want + own_limits[i].offset);
        uint32_t *own = (uint32_t *)((char *)ret + own_limits[i].offset);
        if (v > *own)
            return err_user(e, "limit_too_high",
                            "%s of %u is above the sandbox's %u; ask for less, or give the "
                            "sandbox more",
                            own_limits[i].name, v, *own);
        *own = v ? v : *own;
    }
    if (!any)
        *ret = (struct config_limits){0};
    if (any && !knobs_there(l->sandbox->knobs))
        return err_user(e, "cannot_limit",
                        "limits of a kernel need control groups, which this machine does not "
                        "give; the sandbox's hold");
    return 0;
}

/* ---- use ---- */

/* The sandbox's. A kernel with a group of its own that is killed in there is nobody else's. */
static struct knobs *common(const struct live *l) {
    struct knobs *k = l->sandbox->knobs;
    k->oom_below = l->kills_below;
    for (const struct process *p = l->processes; p; p = p->next)
        k->oom_below += knobs_kills(&p->knobs);
    return k;
}

/* Of a process with a group of its own. */
static uint64_t own_cpu_us(const struct process *p) {
    return knobs_cpu_us(&p->knobs) + p->heard_ns / 1000u;
}

/* Of `all` that the sandbox used, what those without a group of their own did. */
static uint64_t cpu_apart_us(const struct live *l, uint64_t all) {
    uint64_t below = l->cpu_below_us;
    for (const struct process *p = l->processes; p; p = p->next) {
        if (knobs_there(&p->knobs))
            below += own_cpu_us(p);
    }
    return all > below ? all - below : 0;
}

static struct knobs_usage usage_apart(const struct live *l) {
    struct knobs_usage u = knobs_usage(common(l));
    u.cpu_us = cpu_apart_us(l, pace_cpu_us(l));
    return u;
}

static struct knobs_usage own_usage(struct process *p) {
    struct knobs_usage u = knobs_usage(&p->knobs);
    u.cpu_us = own_cpu_us(p);
    return u;
}

struct knobs_usage group_usage(struct process *p) {
    return knobs_there(&p->knobs) ? own_usage(p) : p->was_own ? p->last : usage_apart(p->live);
}

uint64_t group_cpu_us(const struct process *p) {
    return knobs_there(&p->knobs) ? own_cpu_us(p)
           : p->was_own           ? p->last.cpu_us
                                  : cpu_apart_us(p->live, pace_cpu_us(p->live));
}

uint64_t group_peak(const struct process *p) {
    return knobs_there(&p->knobs) ? knobs_memory_peak(&p->knobs) : p->last.memory_peak;
}

bool group_ran_out_of_memory(const struct process *p) {
    return knobs_there(&p->knobs) ? knobs_ran_out_of_memory(&p->knobs)
           : p->was_own           ? p->last.out_of_memory
                                  : knobs_ran_out_of_memory(common(p->live));
}

static uint32_t lower(uint32_t own, uint32_t most) {
    return own < most ? own : most;
}

int group_lower(struct process *p, const struct config_limits *most, struct err *e) {
    if (!p->limits.memory_mb)
        return 0;
    struct config_limits next = p->limits;
    next.memory_mb = lower(next.memory_mb, most->memory_mb);
    next.cpus_percent = lower(next.cpus_percent, most->cpus_percent);
    next.pids = lower(next.pids, most->pids);
    next.disk_mb = most->disk_mb;
    if (knobs_set_memory(&p->knobs, config_group_bytes(&next), e) < 0 ||
        knobs_set_cpus(&p->knobs, next.cpus_percent, e) < 0 ||
        knobs_set_pids(&p->knobs, next.pids, e) < 0)
        return -1;
    p->limits = next;
    return 0;
}

/* The warden keeps the group until it is read. */
void group_leave(struct process *p) {
    struct wire_out o;
    if (!knobs_there(&p->knobs))
        return;
    p->last = own_usage(p);
    p->live->kills_below += knobs_kills(&p->knobs);
    p->live->cpu_below_us += p->last.cpu_us;
    p->was_own = true;
    knobs_done(&p->knobs);
    wire_begin(&o, WIRE_W_LEFT);
    wire_put_u64(&o, p->live->sandbox->id);
    wire_put_u32(&o, p->number);
    chan_send(&p->live->engine->warden, &o);
}

/* Of one that has limits of its own; else null. */
void group_json(const struct process *p, struct jw *j) {
    if (!p->limits.memory_mb) {
        jw_key_null(j, "limits");
        return;
    }
    jw_key(j, "limits");
    jw_object(j);
    jw_key_uint(j, "memory_mb", p->limits.memory_mb);
    jw_key_real(j, "cpus", p->limits.cpus_percent / 100.0);
    jw_key_uint(j, "pids", p->limits.pids);
    jw_object_end(j);
    jw_key(j, "usage");
    jw_object(j);
    jw_key_uint(j, "memory_bytes", knobs_memory(&p->knobs));
    jw_key_uint(j, "memory_peak_bytes", knobs_memory_peak(&p->knobs));
    jw_key_real(j, "cpu_ms", (double)own_cpu_us(p) / 1e3);
    jw_key_uint(j, "processes", knobs_pids(&p->knobs));
    jw_object_end(j);
}
