#pragma once
/* The one list of messages. A line names the message, who sends it to whom, and its payload; fds
 * are listed in their order. `wire_type_name` is for logs.
 *
 *   S server   W warden   N nursery   Z zygote   I init   K kernel   C client (the command line) */

#define WIRE_MESSAGES(X)                                                                            \
    /* S→W */                                                                                     \
    X(W_MAKE) /* u32 profile                                      a sandbox, please */              \
    X(W_END)  /* u64 sandbox                                      kill it, whatever it does */      \
    X(W_LOST) /* u64 sandbox      the same: not all of it came here, nor the knobs of its slot */   \
    X(W_KERNEL) /* u64 sandbox, u32 number, u64 memory bytes, u32 pids, u32 cpus percent            \
                   one more process in it; with memory: it has a control group of its own */        \
    X(W_LEFT)   /* u64 sandbox, u32 number    the control group of one that ended is read */        \
    X(W_SHUT) /* u64 sandbox, u32 number      its stdin is at its end: the copy of it goes too */   \
    X(W_KEEP) /* u64 sandbox; fd: its journal      it outlives this server; the next gets both */   \
    /* W→S */                                                                                     \
    X(W_MADE)   /* u64 sandbox, u32 profile, u32 slot, u32 knobs;                                   \
                   fds: SANDBOX_FDS_ in their order, then `knobs` cgroup knobs (first use of a      \
                   slot only; later sandboxes in it have the same) */                               \
    X(W_FAILED) /* u32 profile, str why                             no sandbox this time */         \
    X(W_EXITED) /* u64 sandbox, u32 number, u32 wait status         its kernel process ended */     \
    X(W_KERNEL_MADE)   /* u64 sandbox, u32 number; fds: SANDBOX_CTL, _STDIN, _STDOUT, _STDERR, and  \
                          the cgroup knobs if it has a group of its own */                          \
    X(W_KERNEL_FAILED) /* u64 sandbox, u32 number, str why */                                       \
    X(W_KEPT)          /* u64 sandbox, u32 profile, u32 slot, u32 knobs, u32 kernels;               \
                          fds: journal, SANDBOX_FDS_, knobs. What an earlier server kept; that many \
                          W_KERNEL_MADE follow (number 0 is in SANDBOX_FDS_, as ends that are shut  \
                          when it is gone), and W_EXITED of those that ended meanwhile */           \
    X(W_GONE)          /* u64 sandbox                                      all of it is dead */     \
    X(W_FORGET)        /* u32 slot          its control group is gone: let its knobs go too */      \
    X(W_PROFILE) /* u32 profile, u32 profile_state, str what, str modules (space separated) */      \
    X(W_LAYERS) /* u32 n, n times: str layer, u32 probe_state, str how   what the machine gives */  \
    X(W_RESTARTS) /* u32 server, u32 nurseries, u32 zygotes         that had to be, so far; the     \
                     first one comes behind the last W_KEPT */                                      \
    X(W_RELOAD)   /* u32 changed profiles, a bit each; fd: the packed configuration */              \
    /* the supervisor→W */                                                                        \
    X(L_CONFIG) /* fds: the packed configuration, the warden's part and all   the profiles anew */  \
    /* W→N */                                                                                     \
    X(N_MAKE)   /* u64 sandbox, u32 slot; fds: cgroup.procs files */                                \
    X(N_END)    /* u64 sandbox */                                                                   \
    X(N_KERNEL) /* u64 sandbox, u32 number; fds: cgroup.procs files */                              \
    /* N→W */                                                                                     \
    X(N_MADE)          /* u64 sandbox; fds: SANDBOX_FDS_ */                                         \
    X(N_FAILED)        /* u64 sandbox, str why */                                                   \
    X(N_EXITED)        /* u64 sandbox, u32 number, u32 wait status */                               \
    X(N_KERNEL_MADE)   /* as W_KERNEL_MADE, no knobs */                                             \
    X(N_KERNEL_FAILED) /* u64 sandbox, u32 number, str why */                                       \
    X(N_GONE)          /* u64 sandbox */                                                            \
    X(N_BORN)  /* u32 pid                          the nursery proper, a child of the warden */     \
    X(N_STATE) /* u32 profile_state, str what, str modules */                                       \
    /* N→Z */                                                                                     \
    X(Z_FORK) /* u64 sandbox, u32 number, u32 uid, u32 procs;                                       \
                 fds: KERNEL_FDS_ in their order, then `procs` cgroup.procs files */                \
    /* Z→N */                                                                                     \
    X(Z_READY)  /* str version, str modules */                                                      \
    X(Z_BROKEN) /* str why                       the profile cannot be loaded; it exits */          \
    X(Z_LOST)   /* str why                       no interpreter could be started; it exits */       \
    X(Z_FORKED) /* u64 sandbox, u32 number, u32 pid */                                              \
    X(Z_FAILED) /* u64 sandbox, u32 number, str why */                                              \
    X(Z_EXITED) /* u64 sandbox, u32 number, u32 pid, u32 wait status */                             \
    /* I→N */                                                                                     \
    X(I_READY)  /* fds: SANDBOX_FDS_, then the kernel's ends: KERNEL_FDS_ less the pidfd */         \
    X(I_BROKEN) /* str why */                                                                       \
    /* N→I, on the same socket, answered by I_READY: KERNEL_SET_FDS */                            \
    X(I_MORE) /* -                                 ends for one more process */                     \
    /* S→I, each answered by I_REPLY or I_ERROR in order */                                       \
    X(I_OPEN)    /* u32 flags (O_RDONLY, or O_WRONLY with O_CREAT…), u32 mode, str path */        \
    X(I_STAT)    /* str path ("": the workspace) */                                                 \
    X(I_LIST)    /* str path, u32 recursive, u32 most, str after (the last page's last path) */     \
    X(I_MKDIR)   /* str path, u32 mode, u32 parents */                                              \
    X(I_MOVE)    /* str from, str to              nothing is replaced */                            \
    X(I_CHMOD)   /* str path, u32 mode */                                                           \
    X(I_REMOVE)  /* str path, u32 recursive */                                                      \
    X(I_TEMP)    /* -                             a file without a name, to write to */             \
    X(I_TTY)     /* -                             a new terminal: the end without a screen */       \
    X(I_PLACE)   /* str path, u32 mode, u64 mtime_ns (0: as it is); fd: that file   gives it its    \
                    name, over another file */                                                      \
    X(I_LINK)    /* str target, str path          a symlink, over another file */                   \
    X(I_CHANGES) /* u32 most, u32 depth, u64 since_ns   regular files that changed since */         \
    X(I_KILL)    /* -                             SIGKILL to all but init, until none is left */    \
    X(I_SIGNAL)  /* u32 number, u32 signal, u32 signal_scope   to a kernel or command */            \
    X(I_LIMITS)  /* limits (limits.h)             new ones: of the tmpfs, in meminfo, of the        \
                    watch, if there is one */                                                       \
    X(I_WATCH)   /* limits                        no cgroups here: watch these */                   \
    X(I_USAGE)   /* -                             no cgroups here: what was used */                 \
    X(I_ECHO)    /* u64                           sent back: what came before is of others */       \
    X(I_LEFT) /* fds, or none                  of a program, unwanted: to be closed when the next   \
                 message comes, for by then the server has closed its own; no reply */              \
    /* I→S */                                                                                     \
    X(I_REPLY)  /* I_OPEN, I_TEMP, I_TTY: one fd; I_STAT: bytes, a record of wire/entry.h; I_LIST:  \
                   u32 count, u32 cut, fd with such records; I_PLACE: u32 replaced; I_CHANGES: u32  \
                   count, u32 cut, fd with records (init/walk.h); I_USAGE: u64 peak bytes, u64 cpu  \
                   us */                                                                            \
    X(I_ERROR)  /* u32 errno, str why */                                                            \
    X(I_DENIED) /* u32 process, str op, str detail, str rule  unasked: a refusal to be told */      \
    X(I_LIMIT)  /* u32 limit_kind                unasked: the watchdog (no cgroups) ended it, or,   \
                   for LIMIT_PIDS, those that were too many */                                      \
    X(I_TASKS)  /* u32                           unasked: processes and threads now (live, no       \
                   cgroups) */                                                                      \
    X(I_NET) /* -                             unasked: a socket reaches the network namespace */    \
    /* K→I */                                                                                     \
    X(K_HAND) /* u32 number, u32 pid; fd: seccomp listener once, before any user code */            \
    /* K→S */                                                                                     \
    X(K_READY)  /* -                             waiting for code */                                \
    X(K_BROKEN) /* str why                       could not enter its sandbox */                     \
    X(K_DONE)   /* see wire/run.h                the execution's end, from a hostile process */     \
    X(K_SAY)    /* bytes JSON, empty when in fd: a regular file of at most LIVE_MAX bytes */        \
    /* S→K */                                                                                     \
    X(K_RUN)  /* see wire/run.h; fd: the code when it is not inline */                              \
    X(K_LIVE) /* limits (limits.h; 0: not by rlimit)   be a live kernel */                          \
    X(K_DO)   /* as K_SAY                        to a live kernel; see py/cell/live.py */           \
    X(K_EXEC) /* limits, as K_LIVE; u32 rows, u32 columns (0: no terminal), str directory,          \
                 u32 nargs, str…, u32 nenv, str "K=V"…; fd: of I_TTY       be a command */      \
    /* C→S */                                                                                     \
    X(C_INPUT)  /* str path, u32 mode; fd: a regular file or memfd   before C_RUN, any number */    \
    X(C_RUN)    /* see wire/run.h; fd: the code when it is not inline */                            \
    X(C_STDIN)  /* bytes; empty means end of file */                                                \
    X(C_SIGNAL) /* u32 signal                    Ctrl-C at the client */                            \
    X(C_INFO)   /* -                             ask for the engine's state */                      \
    /* S→C */                                                                                     \
    X(C_STARTED) /* str execution id */                                                             \
    X(C_WANT)    /* u32 bytes                     that much more of stdin may come */               \
    X(C_OUTPUT)  /* u32 stream (1 or 2), bytes */                                                   \
    X(C_FILE)    /* str path, u64 size; fd: the file, read only */                                  \
    X(C_RESULT)  /* u32 exit status for a shell, str why ("" when the program just ended),          \
                    bytes the result as JSON (empty when it is in the descriptor);                  \
                    fd: memfd with the JSON when it does not fit */                                 \
    X(C_ERROR)   /* u32 retryable, str kind, str message, str remediation */                        \
    X(C_STATE)   /* fd: memfd with JSON */

enum wire_type {
    WIRE_TYPE_NONE = 0,
#define X(name) WIRE_##name,
    WIRE_MESSAGES(X)
#undef X
        WIRE_TYPES_
};

const char *wire_type_name(enum wire_type type);

/* What the owner of a sandbox holds. */
enum sandbox_fd {
    SANDBOX_CTL,    /* SEQPACKET to the kernel */
    SANDBOX_REQ,    /* SEQPACKET to init */
    SANDBOX_STDIN,  /* write end */
    SANDBOX_STDOUT, /* read ends */
    SANDBOX_STDERR,
    SANDBOX_WORKSPACE, /* O_PATH: only for fstat and fstatfs, without a question to init */
    SANDBOX_SNMP,      /* /proc/net/snmp and snmp6 of the network namespace: what had no route */
    SANDBOX_SNMP6,
    SANDBOX_FDS_
};

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
/* What init makes of these: the sandbox's but for the network's tables, the kernel's from
 * KERNEL_CTL on. */
#define INIT_FDS (SANDBOX_SNMP + KERNEL_FDS_ - KERNEL_CTL)
/* The same for one more process in a sandbox: CTL, STDIN, STDOUT, STDERR of the owner, then the
 * kernel's from KERNEL_CTL on. */
#define KERNEL_OWNER_FDS 4
#define KERNEL_SET_FDS   (KERNEL_OWNER_FDS + KERNEL_FDS_ - KERNEL_CTL)

#define LIVE_MAX (64u << 20) /* bytes of one K_SAY or K_DO */

/* Whom a signal is for: the process itself, its process group, or every process that comes from it.
 */
enum signal_scope { SIGNAL_PROCESS, SIGNAL_GROUP, SIGNAL_TREE };

enum profile_state { PROFILE_STARTING, PROFILE_READY, PROFILE_BROKEN, PROFILE_RESTARTING };
enum limit_kind {
    LIMIT_NONE,
    LIMIT_MEMORY,
    LIMIT_TIME,
    LIMIT_CPU,
    LIMIT_PIDS,
    LIMIT_DISK,
    LIMIT_OUTPUT
};
