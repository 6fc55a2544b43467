/* A live sandbox as others see it. */

#include "engine/live/live_view.h"

#include "base/clock.h"
#include "engine/core/about.h"
#include "engine/kernel/kernel_view.h"
#include "engine/live/live_network.h"
#include "engine/process/live_state.h"
#include "engine/process/pace.h"
#include "net/policy_json.h"

#include <string.h>
#include <sys/statfs.h>

const char *live_id(const struct live *l) {
    return l->id;
}

const char *live_metadata(const struct live *l) {
    return l->req.metadata;
}

const char *live_alias(const struct live *l) {
    return l->req.alias;
}

const char *live_tenant(const struct live *l) {
    return l->req.tenant;
}
const char *live_profile(const struct live *l) {
    return l->profile;
}

const char *live_python(const struct live *l) {
    return l->pool && l->pool->state == PROFILE_READY ? l->pool->what : "";
}

const struct limits *live_limits(const struct live *l) {
    return &l->req.limits;
}

bool live_is_paused(const struct live *l) {
    return l->paused;
}

static double unix_time(uint64_t at_ns) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    double left = ((double)at_ns - (double)now_ns()) / 1e9;
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9 + left;
}

bool live_listens(const struct live *l) {
    return l->req.listens;
}

uint16_t live_port(const struct live *l) {
    return l->port;
}

double live_created(const struct live *l) {
    return l->created;
}

double live_expires(const struct live *l) {
    return unix_time(l->expires_ns);
}

static void put_usage(struct jw *j, struct live *l) {
    struct cgroup_fds *k = l->sandbox->cgroup;
    struct statfs f;
    uint64_t peak = cgroup_fds_memory_peak(k);
    if (peak > l->memory_peak)
        l->memory_peak = peak;
    jw_key(j, "usage");
    jw_object(j);
    jw_key_uint(j, "memory_bytes", cgroup_fds_memory(k));
    jw_key_uint(j, "memory_peak_bytes", l->memory_peak);
    jw_key_real(j, "cpu_ms", (double)pace_cpu_us(l) / 1e3);
    jw_key_uint(j, "processes", cgroup_fds_there(k) ? cgroup_fds_pids(k) : l->sandbox->tasks);
    if (fstatfs(l->sandbox->fds[SANDBOX_WORKSPACE], &f) == 0) {
        jw_key_uint(j, "disk_bytes", sandbox_disk_bytes(l->sandbox));
        jw_key_uint(j, "files", f.f_files - f.f_ffree);
    }
    jw_object_end(j);
}

static void put_kernels(struct jw *j, struct live *l) {
    jw_key(j, "kernels");
    jw_array(j);
    for (struct kernel *k = kernel_next(l, NULL); k; k = kernel_next(l, k)) {
        AUTO_BUF json = BUF_INIT;
        kernel_json(k, &json);
        jw_raw(j, json.data, json.len);
    }
    jw_array_end(j);
}

static void live_put_network(struct jw *j, const struct live *l) {
    const char *policy = live_network(l);
    jw_key(j, "network");
    jw_raw(j, policy, strlen(policy));
}

static const struct field usage_fields[] = {
    HAS("memory_bytes", FIELD_INT),    HAS("memory_peak_bytes", FIELD_INT),
    HAS("cpu_ms", FIELD_REAL),         HAS("processes", FIELD_INT),
    MAY_HAVE("disk_bytes", FIELD_INT), MAY_HAVE("files", FIELD_INT),
};
static const struct schema usage_schema = {SCHEMA("SandboxUsage", usage_fields)};

static const struct field bind_fields[] = {
    HAS("host", FIELD_STRING),
    HAS("path", FIELD_STRING),
    MAY_HAVE("mode", FIELD_STRING, WORDS("ro", "rw")),
};
static const struct schema bind_schema = {SCHEMA("Bind", bind_fields)};

static const struct field live_fields[] = {
    HAS("id", FIELD_STRING),
    HAS_OR_NULL("name", FIELD_STRING),
    HAS("state", FIELD_STRING, WORDS("running", "paused")),
    HAS("profile", FIELD_STRING),
    HAS("metadata", FIELD_MAP),
    HAS("created", FIELD_REAL, .help = "unix time"),
    HAS("expires", FIELD_REAL, .help = "unix time"),
    HAS("ttl_seconds", FIELD_INT),
    HAS("idle_seconds", FIELD_INT),
    HAS_OR_NULL("idle_expires", FIELD_REAL, .help = "unix time; null while it is in use"),
    HAS("limits", OBJECT(about_limits_schema)),
    HAS("kernels", LIST_OF(kernel_view_schema)),
    HAS("usage", OBJECT(usage_schema)),
    HAS("network", OBJECT(net_policy_schema)),
    HAS("binds", LIST_OF(bind_schema)),
    HAS_OR_NULL("port", FIELD_INT, .help = "its own, when it was asked for"),
    HAS("executions", FIELD_INT),
};
const struct schema live_schema = {SCHEMA("Sandbox", live_fields)};

void live_json(struct live *l, struct buf *to) {
    struct jw j = JW_INIT(to);
    const char *binds = l->req.binds_json ? l->req.binds_json : "[]";
    bool idles = l->idle_since_ns && l->req.idle_s;
    jw_object(&j);
    jw_key_str(&j, "id", l->id);
    jw_key_str(&j, "name", l->req.name);
    jw_key_str(&j, "state", l->paused ? "paused" : "running");
    jw_key_str(&j, "profile", l->profile);
    jw_key(&j, "metadata");
    jw_raw(&j, l->req.metadata, strlen(l->req.metadata));
    jw_key_real(&j, "created", l->created);
    jw_key_real(&j, "expires", unix_time(l->expires_ns));
    jw_key_uint(&j, "ttl_seconds", l->req.ttl_s);
    jw_key_uint(&j, "idle_seconds", l->req.idle_s);
    if (idles)
        jw_key_real(&j, "idle_expires", unix_time(l->idle_since_ns + l->req.idle_s * SECOND_NS));
    else
        jw_key_null(&j, "idle_expires");
    about_put_limits(&j, "limits", &l->req.limits, LIMIT_OF_ANY);
    put_kernels(&j, l);
    put_usage(&j, l);
    live_put_network(&j, l);
    jw_key(&j, "binds");
    jw_raw(&j, binds, strlen(binds));
    if (l->port)
        jw_key_uint(&j, "port", l->port);
    else
        jw_key_null(&j, "port");
    jw_key_uint(&j, "executions", l->executions);
    jw_object_end(&j);
}
