/* The control group of a kernel in a live sandbox: the sandbox's, or one of its own below that,
 * when it has limits of its own. The warden makes that for each process anew, gives us its files,
 * and keeps it until we have read how the process ended. */

#include "engine/process/group.h"

#include "base/buf.h"
#include "base/json.h"
#include "config/config.h"
#include "engine/core/about.h"
#include "engine/core/sandbox.h"
#include "engine/process/live_state.h"
#include "engine/process/pace.h"
#include "engine/process/process.h"

/* ---- limits ---- */

/* A kernel has no more than its sandbox. */
static void lower(struct limits *own, const struct limits *most) {
    for (size_t i = 0; i < LIMITS_; i++)
        if (limits_info[i].scope == LIMIT_OF_KERNEL && limits_value(own, i) > limits_value(most, i))
            limits_set(own, i, limits_value(most, i));
}

/* The operator's, for a kernel that asks for nothing. */
static struct limits usual_limits(const struct live *l) {
    struct limits usual = l->engine->config.live_kernel;
    if (!cgroup_fds_there(l->sandbox->cgroup))
        return (struct limits){0};
    lower(&usual, &l->req.limits);
    return usual;
}

static bool wants_any(const struct limits *l) {
    return l && limits_any(l, LIMIT_OF_KERNEL);
}

static int kernel_limit_too_high(size_t i, uint64_t asked, uint64_t own, struct err *e) {
    AUTO_BUF asks = BUF_INIT;
    AUTO_BUF has = BUF_INIT;
    limits_add_text(&asks, i, asked);
    limits_add_text(&has, i, own);
    return err_user(e, "limit_too_high", "%s of %s is above the sandbox's %s, which can be raised",
                    limits_info[i].name, asks.data, has.data);
}

/* Limits of its own: those that are not given are the sandbox's. */
int group_settle(const struct live *l, const struct limits *want, struct limits *ret,
                 struct err *e) {
    struct limits usual = usual_limits(l);
    if (!wants_any(want))
        want = &usual;
    bool any = wants_any(want);
    *ret = l->req.limits;
    for (size_t i = 0; i < LIMITS_; i++) {
        const struct limit_info *info = &limits_info[i];
        uint64_t v = info->scope == LIMIT_OF_KERNEL ? limits_value(want, i) : 0;
        uint64_t own = limits_value(ret, i);
        if (v > own)
            return kernel_limit_too_high(i, v, own, e);
        limits_set(ret, i, v ? v : own);
    }
    if (!any)
        *ret = (struct limits){0};
    if (any && !cgroup_fds_there(l->sandbox->cgroup))
        return err_user(e, "cannot_limit",
                        "limits of a kernel need control groups, which this machine does not "
                        "give; the sandbox's hold");
    return 0;
}

struct limits group_self_limits(const struct process *p) {
    struct limits l = p->live->req.limits;
    l.cpu_seconds = 0; /* of each execution; the server watches */
    if (cgroup_fds_there(p->live->sandbox->cgroup))
        l.pids = 0;
    if (p->limits.cpus_percent)
        l.cpus_percent = p->limits.cpus_percent;
    return l;
}

/* ---- use ---- */

/* The sandbox's. A kernel with a group of its own that is killed in there is nobody else's. */
static struct cgroup_fds *common(const struct live *l) {
    struct cgroup_fds *k = l->sandbox->cgroup;
    k->oom_below = l->kills_below;
    for (const struct process *p = l->processes; p; p = p->next)
        k->oom_below += cgroup_fds_kills(&p->cgroup);
    return k;
}

/* Of a process with a group of its own. */
static uint64_t own_cpu_us(const struct process *p) {
    return cgroup_fds_cpu_us(&p->cgroup) + p->heard_ns / 1000u;
}

/* Of `all` that the sandbox used, what those without a group of their own did. */
static uint64_t cpu_apart_us(const struct live *l, uint64_t all) {
    uint64_t below = l->cpu_below_us;
    for (const struct process *p = l->processes; p; p = p->next) {
        if (cgroup_fds_there(&p->cgroup))
            below += own_cpu_us(p);
    }
    return all > below ? all - below : 0;
}

static struct cgroup_usage usage_apart(const struct live *l) {
    struct cgroup_usage u = cgroup_fds_usage(common(l));
    u.cpu_us = cpu_apart_us(l, pace_cpu_us(l));
    return u;
}

static struct cgroup_usage own_usage(struct process *p) {
    struct cgroup_usage u = cgroup_fds_usage(&p->cgroup);
    u.cpu_us = own_cpu_us(p);
    return u;
}

struct cgroup_usage group_usage(struct process *p) {
    return cgroup_fds_there(&p->cgroup) ? own_usage(p)
           : p->was_own                 ? p->last
                                        : usage_apart(p->live);
}

uint64_t group_cpu_us(const struct process *p) {
    return cgroup_fds_there(&p->cgroup) ? own_cpu_us(p)
           : p->was_own                 ? p->last.cpu_us
                                        : cpu_apart_us(p->live, pace_cpu_us(p->live));
}

uint64_t group_peak(const struct process *p) {
    return cgroup_fds_there(&p->cgroup) ? cgroup_fds_memory_peak(&p->cgroup) : p->last.memory_peak;
}

bool group_ran_out_of_memory(const struct process *p) {
    return cgroup_fds_there(&p->cgroup) ? cgroup_fds_ran_out_of_memory(&p->cgroup)
           : p->was_own                 ? p->last.out_of_memory
                                        : cgroup_fds_ran_out_of_memory(common(p->live));
}

int group_lower(struct process *p, const struct limits *most, struct err *e) {
    if (!p->limits.memory_mb)
        return 0;
    struct limits next = p->limits;
    lower(&next, most);
    next.disk_mb = most->disk_mb;
    if (cgroup_fds_set_memory(&p->cgroup, config_group_bytes(&next), e) < 0 ||
        cgroup_fds_set_cpus(&p->cgroup, next.cpus_percent, e) < 0 ||
        cgroup_fds_set_pids(&p->cgroup, next.pids, e) < 0)
        return -1;
    p->limits = next;
    return 0;
}

/* The warden keeps the group until it is read. */
void group_leave(struct process *p) {
    struct wire_out o;
    if (!cgroup_fds_there(&p->cgroup))
        return;
    p->last = own_usage(p);
    p->live->kills_below += cgroup_fds_kills(&p->cgroup);
    p->live->cpu_below_us += p->last.cpu_us;
    p->was_own = true;
    cgroup_fds_done(&p->cgroup);
    w_left_put(&o, &(struct w_left){.sandbox = p->live->sandbox->id, .number = p->number});
    chan_send(&p->live->engine->warden, &o);
}

static const struct field usage_fields[] = {
    HAS("memory_bytes", FIELD_INT),
    HAS("memory_peak_bytes", FIELD_INT),
    HAS("cpu_ms", FIELD_REAL),
    HAS("processes", FIELD_INT),
};
const struct schema group_usage_schema = {SCHEMA("KernelUsage", usage_fields)};

/* Of one that has limits of its own; else null. */
void group_json(const struct process *p, struct jw *j) {
    if (!p->limits.memory_mb) {
        jw_key_null(j, "limits");
        return;
    }
    about_put_limits(j, "limits", &p->limits, LIMIT_OF_KERNEL);
    jw_key(j, "usage");
    jw_object(j);
    jw_key_uint(j, "memory_bytes", cgroup_fds_memory(&p->cgroup));
    jw_key_uint(j, "memory_peak_bytes", cgroup_fds_memory_peak(&p->cgroup));
    jw_key_real(j, "cpu_ms", (double)own_cpu_us(p) / 1e3);
    jw_key_uint(j, "processes", cgroup_fds_pids(&p->cgroup));
    jw_object_end(j);
}
