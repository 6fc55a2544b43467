#pragma once
/* What this machine can give: one probe per layer of isolation, each in a child process, so that no
 * probe leaves anything behind. All together take a few milliseconds: they run at every start. */

#include "base/err.h"
#include "sandbox/cgroup.h"
#include "sandbox/idmap.h"

#include <stdbool.h>

/* X(name, MINIMUM, what it is in words, how it is said to be there, what is lost without it)
 *
 *   MINIMUM  STRICT: the word "strict" stands for this layer, among others. NAMED: only an operator
 *            who names the layer requires it.
 *   how      of a layer that probe_trial.c tries; "": probe.c has more to say */
/* clang-format off */
#define PROBE_LAYERS(X)                                                                            \
    X(user_ns, STRICT, "user namespace", "made", "root inside would be root outside")              \
    X(pid_ns, STRICT, "pid namespace", "made", "programs could see and signal each other")         \
    X(mount_ns, STRICT, "mount namespace", "made", "programs would see the host's files")          \
    X(net_ns, STRICT, "network namespace", "made", "programs would reach the network")             \
    X(ipc_ns, STRICT, "ipc namespace", "made",                                                     \
      "programs could share memory and queues with others")                                        \
    X(uts_ns, STRICT, "uts namespace", "made", "programs would see the host's name")               \
    X(cgroup_ns, STRICT, "cgroup namespace", "made",                                               \
      "programs would see the host's control groups")                                              \
    X(proc, STRICT, "a /proc of its own", "mounted", "programs would see other processes")         \
    X(seccomp, STRICT, "system call filter", "filter loaded",                                      \
      "the whole system call surface would be open")                                               \
    X(notify, STRICT, "seccomp user notification", "listener opened",                              \
      "refused operations would not be reported")                                                  \
    X(no_new_privs, STRICT, "no_new_privs", "set", "set-uid programs would gain privileges")       \
    X(cores, STRICT, "no core dumps", "", "a program of the host could be given core dumps")       \
    X(ids, NAMED, "a uid of its own for each sandbox", "", "sandboxes would share one uid")        \
    X(cgroup, NAMED, "control groups (memory, pids, cpu)", "",                                     \
      "limits would be watched, not enforced")                                                     \
    X(landlock, NAMED, "Landlock", "", "one wall around the files less")                           \
    X(egress, NAMED, "connections that are held", "", "no sandbox could be given a network")
/* clang-format on */

enum probe_layer {
#define X(name, ...) PROBE_##name,
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

/* The layers named in `minimum` ("strict", "none", or layer names separated by spaces or commas;
 * "strict,cgroup" adds one) as a bit set. */
int probe_minimum(const char *minimum, uint32_t *ret_layers, struct err *e);

/* Never fails: what cannot be found out is PROBE_MISSING with the reason. */
void probe_run(const struct idmap *ids, enum cgroup_kind want_cgroup, struct probe *ret);
/* The same where the control groups are open already (or known not to be had). */
void probe_run_with(const struct idmap *ids, const struct cgroup_root *groups, struct probe *ret);

/* The layers of `need` that are missing or weak, as one sentence with what to do; 0 if none is.
 * Whoever names a layer wants all of it: "strict,cgroup" is not met by a watchdog. */
int probe_check(const struct probe *p, uint32_t need, struct err *e);
