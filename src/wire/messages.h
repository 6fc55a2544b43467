#pragma once
/* Every message, with what each carries. README.md says how to add or change one.
 *
 *   S server   W warden   N nursery   Z zygote   I init   K kernel   C client (the command line)
 *   L the life line, from the supervisor to the warden   G gate   U usher
 *
 * The messages themselves are in the headers messages_*.h beside this one, by who talks to whom.
 * Each of those has three lists:
 *
 * The messages: X(NAME, number, since). A number is never given to another message, since a peer
 * may be of an older build; `since` is the WIRE_VERSION that brought the message. Those without a
 * payload carry nothing, but for C_RUN, K_RUN and K_DONE, which wire/run.h describes.
 *
 * The payloads: P(struct, message, surplus). From each line come `struct w_make`, w_make_put() and
 * w_make_get() (wire/codec.h). A message may have several payloads (I_REPLY). `surplus`:
 * descriptors beyond those named are no fault; for peers that are not ours, whose descriptors are
 * closed by others.
 *
 * The fields of each payload: F(since, kind, name, most), in the order in which they travel. New
 * ones come at the end, with the WIRE_VERSION that brought them.
 *   u32 u64  numbers; u32: at most `most`, unless that is 0
 *   str      a string of at most `most` bytes
 *   text     the same, cut when it is sent: words for people
 *   bytes    struct wire_bytes
 *   strs     struct wire_strs, a list of strings
 *   limits   struct limits (limits.h)
 *   fd       a descriptor; fd_or: one, or -1 for none
 *   fds      struct wire_fds, at most `most` descriptors
 *   fd_map   an array of `most` descriptors, of which any may be -1
 *
 * What several of them need stands here: the descriptors of a sandbox and of a kernel, the states
 * of a profile, and the limits that a program can meet. */

#include "wire/messages_client.h"
#include "wire/messages_init.h"
#include "wire/messages_kernel.h"
#include "wire/messages_network.h"
#include "wire/messages_nursery.h"
#include "wire/messages_warden.h"

#define WIRE_WHY  400 /* bytes of a reason */
#define WIRE_PATH 4095

#define WIRE_MESSAGES(X)                                                                           \
    WARDEN_MESSAGES(X)                                                                             \
    NURSERY_MESSAGES(X)                                                                            \
    INIT_MESSAGES(X)                                                                               \
    KERNEL_MESSAGES(X)                                                                             \
    CLIENT_MESSAGES(X)                                                                             \
    NETWORK_MESSAGES(X)

#define WIRE_PAYLOADS(P)                                                                           \
    WARDEN_PAYLOADS(P)                                                                             \
    NURSERY_PAYLOADS(P)                                                                            \
    INIT_PAYLOADS(P)                                                                               \
    KERNEL_PAYLOADS(P)                                                                             \
    CLIENT_PAYLOADS(P)                                                                             \
    NETWORK_PAYLOADS(P)

enum wire_type {
    WIRE_TYPE_NONE = 0,
#define X(name, number, since) WIRE_##name = (number),
    WIRE_MESSAGES(X)
#undef X
        WIRE_TYPES_ = 256
};

/* For logs. */
const char *wire_type_name(enum wire_type type);

/* What the owner of a sandbox holds. */
enum sandbox_fd {
    SANDBOX_CTL,    /* SEQPACKET to the kernel */
    SANDBOX_REQ,    /* SEQPACKET to init */
    SANDBOX_STDIN,  /* write end */
    SANDBOX_STDOUT, /* read ends */
    SANDBOX_STDERR,
    /* From here on native only: another way of making sandboxes may leave them out, and whoever
     * uses one looks whether it is there. */
    SANDBOX_WORKSPACE, /* O_PATH: only for fstat and fstatfs, without a question to init */
    SANDBOX_SNMP,      /* /proc/net/snmp and snmp6 of the network namespace: what had no route */
    SANDBOX_SNMP6,
    SANDBOX_FDS_
};
#define SANDBOX_NEEDED ((1u << SANDBOX_WORKSPACE) - 1) /* a bit each: no sandbox without these */

/* What the zygote's child needs to become the kernel of a sandbox. */
enum kernel_fd {
    KERNEL_INIT, /* pidfd of the sandbox's init */
    KERNEL_HAND, /* SEQPACKET to init: takes the seccomp listener */
    KERNEL_CTL,
    KERNEL_STDIN,
    KERNEL_STDOUT,
    KERNEL_STDERR,
    KERNEL_LANDLOCK, /* ruleset, or absent (then it is the null device) */
    KERNEL_FDS_
};
/* What init makes of these for a process: those of the owner (CTL, STDIN, STDOUT, STDERR; for the
 * first one the sandbox's up to SANDBOX_SNMP), and the kernel's from KERNEL_CTL on. */
#define KERNEL_OWNER_FDS 4
#define KERNEL_END_FDS   (KERNEL_FDS_ - KERNEL_CTL)

#define LIVE_MAX  (64u << 20) /* bytes of one K_SAY or K_DO */
#define PROCS_FDS 8           /* cgroup.procs files of one control group at most */

/* Whom a signal is for: the process itself, its process group, or every process that comes from it.
 */
enum signal_scope { SIGNAL_PROCESS, SIGNAL_GROUP, SIGNAL_TREE };

enum profile_state { PROFILE_STARTING, PROFILE_READY, PROFILE_BROKEN, PROFILE_RESTARTING };

/* The limits that a program can meet, with their words in results (`limit_hit`): X(KIND, word). New
 * ones come last, since init may be of an older build. What each did to a program is said in
 * engine/core/warnings.c. */
#define LIMIT_KINDS(X)                                                                             \
    X(NONE, NULL)                                                                                  \
    X(MEMORY, "memory")                                                                            \
    X(TIME, "time")                                                                                \
    X(CPU, "cpu")                                                                                  \
    X(PIDS, "pids")                                                                                \
    X(DISK, "disk")                                                                                \
    X(OUTPUT, "output")                                                                            \
    X(NETWORK, "network")
enum limit_kind {
#define X(kind, word) LIMIT_##kind,
    LIMIT_KINDS(X)
#undef X
};
enum {
#define X(kind, word) +1
    LIMIT_KINDS_ = LIMIT_KINDS(X) /* how many there are */
#undef X
};
