#pragma once
/* What this machine can give: one probe per layer of isolation, each in a child process, so that no
 * probe leaves anything behind. All together take a few milliseconds: they run at every start. */

#include "base/err.h"
#include "sandbox/cgroup.h"
#include "sandbox/idmap.h"

#include <stdbool.h>

/* X(name, what it is in words, what is lost without it) */
#define PROBE_LAYERS(X)                                                                            \
    X(user_ns, "user namespace", "root inside would be root outside")                              \
    X(pid_ns, "pid namespace", "programs could see and signal each other")                         \
    X(mount_ns, "mount namespace", "programs would see the host's files")                          \
    X(net_ns, "network namespace", "programs would reach the network")                             \
    X(ipc_ns, "ipc namespace", "programs could share memory and queues with others")               \
    X(uts_ns, "uts namespace", "programs would see the host's name")                               \
    X(cgroup_ns, "cgroup namespace", "programs would see the host's control groups")               \
    X(proc, "a /proc of its own", "programs would see other processes")                            \
    X(seccomp, "system call filter", "the whole system call surface would be open")                \
    X(notify, "seccomp user notification", "refused operations would not be reported")             \
    X(no_new_privs, "no_new_privs", "set-uid programs would gain privileges")                      \
    X(cores, "no core dumps", "a program of the host could be given core dumps")                   \
    X(ids, "a uid of its own for each sandbox", "sandboxes would share one uid")                   \
    X(cgroup, "control groups (memory, pids, cpu)", "limits would be watched, not enforced")       \
    X(landlock, "Landlock", "one wall around the files less")

enum probe_layer {
#define X(name, what, lost) PROBE_##name,
    PROBE_LAYERS(X)
#undef X
        PROBE_LAYERS_
};

enum probe_state { PROBE_OK, PROBE_WEAK, PROBE_MISSING };

struct probe_result {
    enum probe_state state;
    char how[160]; /* what was found: "v1, at /sys/fs/cgroup/memory", "ABI 6" */
    char fix[240]; /* what to do about it: the exact command or setting; "" when ok */
};

struct probe {
    struct probe_result layers[PROBE_LAYERS_];
};

const char *probe_layer_name(enum probe_layer l);
const char *probe_layer_what(enum probe_layer l);
const char *probe_layer_lost(enum probe_layer l);

/* The layers named in `minimum` ("strict", "none", or layer names separated by spaces or commas,
 * "strict" standing for all but ids, cgroup and landlock; "strict,cgroup" adds one) as a bit set.
 */
int probe_minimum(const char *minimum, uint32_t *ret_layers, struct err *e);

/* Never fails: what cannot be found out is PROBE_MISSING with the reason. */
void probe_run(const struct idmap *ids, enum cgroup_kind want_cgroup, struct probe *ret);
/* The same where the control groups are open already (or known not to be had). */
void probe_run_with(const struct idmap *ids, const struct cgroup_root *groups, struct probe *ret);

/* The layers of `need` that are missing or weak, as one sentence with what to do; 0 if none is.
 * Whoever names a layer wants all of it: "strict,cgroup" is not met by a watchdog. */
int probe_check(const struct probe *p, uint32_t need, struct err *e);
