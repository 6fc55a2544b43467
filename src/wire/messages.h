#pragma once
/* The one list of messages, with what each carries. README.md says how to add or change one.
 *
 *   S server   W warden   N nursery   Z zygote   I init   K kernel   C client (the command line)
 *   L the life line, from the supervisor to the warden   G gate   U usher
 *
 * First the messages: X(NAME, number, since). A number is never given to another message, since a
 * peer may be of an older build; `since` is the WIRE_VERSION that brought the message. Those
 * without a payload below carry nothing, but for C_RUN, K_RUN and K_DONE, which wire/run.h
 * describes. */

#define WIRE_MESSAGES(X)                                                                            \
    /* S→W */                                                                                     \
    X(W_MAKE, 1, 2)   /* a sandbox, please */                                                       \
    X(W_END, 2, 2)    /* kill it, whatever it does */                                               \
    X(W_LOST, 3, 2)   /* the same: not all of it came here, nor the knobs of its slot */            \
    X(W_KERNEL, 4, 2) /* one more process in a live sandbox */                                      \
    X(W_LEFT, 5, 2)   /* the control group of a process that ended is read */                       \
    X(W_SHUT, 6, 2)   /* the stdin of a process is at its end: the warden's copy goes too */        \
    X(W_KEEP, 7, 2) /* the sandbox outlives this server; the next one gets it, and its journal */   \
    /* W→S */                                                                                     \
    X(W_MADE, 10, 2)                                                                                \
    X(W_FAILED, 11, 2) /* no sandbox this time */                                                   \
    X(W_EXITED, 12, 2) /* a kernel or command ended */                                              \
    X(W_KERNEL_MADE, 13, 2)                                                                         \
    X(W_KERNEL_FAILED, 14, 2)                                                                       \
    X(W_KEPT, 15, 2)    /* what an earlier server kept; one W_KERNEL_MADE for each further process  \
                           follows, and W_EXITED of those that ended meanwhile */                   \
    X(W_GONE, 16, 2)    /* all of the sandbox is dead */                                            \
    X(W_FORGET, 17, 2)  /* the slot's control group is gone: let its knobs go too */                \
    X(W_PROFILE, 18, 2) /* what a profile's nursery said of itself */                               \
    X(W_LAYER, 19, 2)   /* what the machine gives of one layer of isolation */                      \
    X(W_RESTARTS, 20, 2) /* that had to be, so far; the first one comes behind the last W_KEPT */   \
    X(W_RELOAD, 21, 2)   /* the configuration anew */                                               \
    X(W_GATE, 22, 3)     /* a channel to the gate; a new one whenever gate or server are new */     \
    X(W_STRANDED, 23, 4) /* memory of sandboxes that are gone, which somebody holds still */        \
    /* the supervisor→W */                                                                        \
    X(L_CONFIG, 40, 2) /* the configuration anew */                                                 \
    /* W→N */                                                                                     \
    X(N_MAKE, 50, 2)                                                                                \
    X(N_END, 51, 2)                                                                                 \
    X(N_KERNEL, 52, 2)                                                                              \
    /* N→W */                                                                                     \
    X(N_MADE, 60, 2)                                                                                \
    X(N_FAILED, 61, 2)                                                                              \
    X(N_EXITED, 62, 2)                                                                              \
    X(N_KERNEL_MADE, 63, 2)                                                                         \
    X(N_KERNEL_FAILED, 64, 2)                                                                       \
    X(N_GONE, 65, 2)                                                                                \
    X(N_BORN, 66, 2)  /* the nursery proper, a child of the warden */                               \
    X(N_STATE, 67, 2) /* of the profile */                                                          \
    /* N→Z */                                                                                     \
    X(Z_FORK, 80, 2)                                                                                \
    /* Z→N */                                                                                     \
    X(Z_READY, 85, 2)                                                                               \
    X(Z_BROKEN, 86, 2) /* the profile cannot be loaded; the zygote exits */                         \
    X(Z_LOST, 87, 2)   /* no interpreter could be started; the zygote exits */                      \
    X(Z_FORKED, 88, 2)                                                                              \
    X(Z_FAILED, 89, 2)                                                                              \
    X(Z_EXITED, 90, 2)                                                                              \
    /* I→N */                                                                                     \
    X(I_READY, 100, 2)                                                                              \
    X(I_BROKEN, 101, 2)                                                                             \
    /* N→I, on the same socket, answered by I_READY or I_BROKEN */                                \
    X(I_MORE, 102, 2) /* ends for one more process */                                               \
    /* S→I, each answered by I_REPLY or I_ERROR in order */                                       \
    X(I_OPEN, 110, 2)                                                                               \
    X(I_STAT, 111, 2)                                                                               \
    X(I_LIST, 112, 2)                                                                               \
    X(I_MKDIR, 113, 2)                                                                              \
    X(I_MOVE, 114, 2) /* nothing is replaced */                                                     \
    X(I_CHMOD, 115, 2)                                                                              \
    X(I_REMOVE, 116, 2)                                                                             \
    X(I_TEMP, 117, 2)    /* a file without a name, to write to */                                   \
    X(I_TTY, 118, 2)     /* a new terminal: the end without a screen */                             \
    X(I_PLACE, 119, 2)   /* gives a file of I_TEMP its name, over another file */                   \
    X(I_LINK, 120, 2)    /* a symlink, over another file */                                         \
    X(I_CHANGES, 121, 2) /* regular files that changed since */                                     \
    X(I_KILL, 122, 2)    /* SIGKILL to all but init, until none is left */                          \
    X(I_SIGNAL, 123, 2)  /* to a kernel or command */                                               \
    X(I_LIMITS, 124, 2)  /* those of the sandbox as a whole, when they are not what they were */    \
    X(I_WATCH, 125, 2)   /* no cgroups here: watch these limits */                                  \
    X(I_USAGE, 126, 2)   /* no cgroups here: what was used */                                       \
    X(I_ECHO, 127, 2)    /* sent back: all before it is over, that of an earlier server too */      \
    X(I_LEFT, 128, 2)    /* fds, or none: of a program, unwanted, to be closed when the next        \
                            message comes, for by then the server has closed its own; no reply */   \
    X(I_NETWORK, 129, 3) /* from now on connects to outside are asked for on this channel */        \
    X(I_TRAFFIC, 130, 3) /* what went through the network, by rule */                               \
    X(I_BIND, 131, 5)    /* a directory of the host, in the workspace from now on */                \
    /* I→S */                                                                                     \
    X(I_REPLY, 140, 2) /* what it carries depends on the question: i_reply_… below, or nothing */ \
    X(I_ERROR, 141, 2)                                                                              \
    X(I_DENIED, 142, 2) /* unasked: a refusal to be told */                                         \
    X(I_LIMIT, 143, 2) /* unasked: a watch of init's ended it, or, for LIMIT_PIDS, those that were  \
                          too many */                                                               \
    X(I_TASKS, 144, 2) /* unasked: processes and threads now (live, no cgroups) */                  \
    X(I_NET, 145, 2)   /* unasked: a socket reaches the network namespace */                        \
    /* K→I */                                                                                     \
    X(K_HAND, 160, 2) /* once, before any user code */                                              \
    /* K→S */                                                                                     \
    X(K_READY, 165, 2)  /* waiting for code */                                                      \
    X(K_BROKEN, 166, 2) /* could not enter its sandbox */                                           \
    X(K_DONE, 167, 2)   /* the execution's end, from a hostile process */                           \
    X(K_SAY, 168, 2)    /* of a live kernel */                                                      \
    /* S→K */                                                                                     \
    X(K_RUN, 175, 2)                                                                                \
    X(K_LIVE, 176, 2) /* be a live kernel */                                                        \
    X(K_DO, 177, 2)   /* to a live kernel; see py/cell/live.py */                                   \
    X(K_EXEC, 178, 2) /* be a command */                                                            \
    /* C→S */                                                                                     \
    X(C_INPUT, 190, 2) /* before C_RUN, any number */                                               \
    X(C_RUN, 191, 2)                                                                                \
    X(C_STDIN, 192, 2)   /* empty means end of file */                                              \
    X(C_SIGNAL, 193, 2)  /* Ctrl-C at the client */                                                 \
    X(C_INFO, 194, 2)    /* ask for the engine's state */                                           \
    X(C_NETWORK, 195, 3) /* before C_RUN: what it may reach */                                      \
    /* S→C */                                                                                     \
    X(C_STARTED, 200, 2)                                                                            \
    X(C_WANT, 201, 2) /* that much more of stdin may come */                                        \
    X(C_OUTPUT, 202, 2)                                                                             \
    X(C_FILE, 203, 2)                                                                               \
    X(C_RESULT, 204, 2)                                                                             \
    X(C_ERROR, 205, 2)                                                                              \
    X(C_STATE, 206, 2)                                                                              \
    /* W→G */                                                                                     \
    X(G_SERVER, 210, 3) /* a new server, and the channel to it */                                   \
    X(G_CONFIG, 211, 3) /* the configuration anew */                                                \
    /* S→G */                                                                                     \
    X(G_ATTACH, 212, 3) /* a sandbox gets a network; answered by G_ATTACHED */                      \
    X(G_POLICY, 213, 3) /* another policy; answered by G_IN_FORCE */                                \
    X(G_FORGET, 214, 3) /* the sandbox is gone */                                                   \
    /* G→S */                                                                                     \
    X(G_ATTACHED, 215, 3)                                                                           \
    X(G_IN_FORCE, 216, 3)                                                                           \
    X(G_NOTE, 217, 3)   /* for the audit log: the first use of a rule's target, or a refusal */     \
    X(G_COUNTS, 218, 3) /* since the gate began; once a second at most */                           \
    X(G_OPEN, 219, 3)   /* how many outside sockets a sandbox has, in steps */                      \
    X(G_LOST, 243, 4)   /* a sandbox's channel: it asks nothing until it is attached again */       \
    /* I→G, on the channel of one sandbox */                                                      \
    X(A_ASK, 220, 3)      /* may this be connected to? answered by A_VERDICT */                     \
    X(A_WITHDRAW, 221, 3) /* the program gave up before A_RESULT came */                            \
    X(A_NAME, 222, 3)     /* a question for a name; answered by A_NAMED */                          \
    X(A_HELLO, 223, 3)    /* the name that a connection says; answered by A_HELLOED */              \
    X(A_STANDS, 224, 3)   /* to a new gate: a connection that an earlier one made */                \
    X(A_END, 225, 3)      /* a connection is over */                                                \
    /* G→I */                                                                                     \
    X(A_LIMITS, 226, 3)  /* first, and with each policy */                                          \
    X(A_VERDICT, 227, 3) /* after one without an errno comes A_RESULT */                            \
    X(A_RESULT, 228, 3)  /* the outside socket, connected, or why there is none */                  \
    X(A_NAMED, 229, 3)                                                                              \
    X(A_HELLOED, 230, 3)                                                                            \
    X(A_CLOSE, 231, 3) /* no longer allowed: reset it, both ways */                                 \
    /* I→U */                                                                                     \
    X(U_RELAY, 235, 3) /* copy between these two */                                                 \
    X(U_CLOSE, 236, 3)                                                                              \
    X(U_NAMED, 237, 3)                                                                              \
    X(U_HELLOED, 238, 3)                                                                            \
    X(U_LIMITS, 239, 3)                                                                             \
    /* U→I */                                                                                     \
    X(U_NAME, 240, 3)                                                                               \
    X(U_HELLO, 241, 3)                                                                              \
    X(U_END, 242, 3)

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

/* The payloads: P(struct, message, surplus). From each line come `struct w_make`, w_make_put() and
 * w_make_get() (wire/codec.h). A message may have several payloads (I_REPLY). `surplus`:
 * descriptors beyond those named are no fault; for peers that are not ours, whose descriptors are
 * closed by others. */
#define WIRE_PAYLOADS(P)                                                                           \
    P(w_make, W_MAKE, false)                                                                       \
    P(w_end, W_END, false)                                                                         \
    P(w_lost, W_LOST, false)                                                                       \
    P(w_kernel, W_KERNEL, false)                                                                   \
    P(w_left, W_LEFT, false)                                                                       \
    P(w_shut, W_SHUT, false)                                                                       \
    P(w_keep, W_KEEP, false)                                                                       \
    P(w_made, W_MADE, false)                                                                       \
    P(w_failed, W_FAILED, false)                                                                   \
    P(w_exited, W_EXITED, false)                                                                   \
    P(w_kernel_made, W_KERNEL_MADE, false)                                                         \
    P(w_kernel_failed, W_KERNEL_FAILED, false)                                                     \
    P(w_kept, W_KEPT, false)                                                                       \
    P(w_gone, W_GONE, false)                                                                       \
    P(w_forget, W_FORGET, false)                                                                   \
    P(w_profile, W_PROFILE, false)                                                                 \
    P(w_layer, W_LAYER, false)                                                                     \
    P(w_restarts, W_RESTARTS, false)                                                               \
    P(w_reload, W_RELOAD, false)                                                                   \
    P(w_gate, W_GATE, false)                                                                       \
    P(l_config, L_CONFIG, false)                                                                   \
    P(n_make, N_MAKE, false)                                                                       \
    P(n_end, N_END, false)                                                                         \
    P(n_kernel, N_KERNEL, false)                                                                   \
    P(n_made, N_MADE, false)                                                                       \
    P(n_failed, N_FAILED, false)                                                                   \
    P(n_exited, N_EXITED, false)                                                                   \
    P(n_kernel_made, N_KERNEL_MADE, false)                                                         \
    P(n_kernel_failed, N_KERNEL_FAILED, false)                                                     \
    P(n_gone, N_GONE, false)                                                                       \
    P(n_born, N_BORN, false)                                                                       \
    P(n_state, N_STATE, false)                                                                     \
    P(z_fork, Z_FORK, false)                                                                       \
    P(z_ready, Z_READY, false)                                                                     \
    P(z_broken, Z_BROKEN, false)                                                                   \
    P(z_lost, Z_LOST, false)                                                                       \
    P(z_forked, Z_FORKED, false)                                                                   \
    P(z_failed, Z_FAILED, false)                                                                   \
    P(z_exited, Z_EXITED, false)                                                                   \
    P(i_ready, I_READY, false)                                                                     \
    P(i_broken, I_BROKEN, false)                                                                   \
    P(i_open, I_OPEN, false)                                                                       \
    P(i_stat, I_STAT, false)                                                                       \
    P(i_list, I_LIST, false)                                                                       \
    P(i_mkdir, I_MKDIR, false)                                                                     \
    P(i_move, I_MOVE, false)                                                                       \
    P(i_chmod, I_CHMOD, false)                                                                     \
    P(i_remove, I_REMOVE, false)                                                                   \
    P(i_place, I_PLACE, false)                                                                     \
    P(i_link, I_LINK, false)                                                                       \
    P(i_changes, I_CHANGES, false)                                                                 \
    P(i_signal, I_SIGNAL, false)                                                                   \
    P(i_limits, I_LIMITS, false)                                                                   \
    P(i_watch, I_WATCH, false)                                                                     \
    P(i_echo, I_ECHO, false)                                                                       \
    P(i_left, I_LEFT, false)                                                                       \
    P(i_network, I_NETWORK, false)                                                                 \
    P(i_reply_fd, I_REPLY, false)                                                                  \
    P(i_reply_entry, I_REPLY, false)                                                               \
    P(i_reply_list, I_REPLY, false)                                                                \
    P(i_reply_place, I_REPLY, false)                                                               \
    P(i_reply_usage, I_REPLY, false)                                                               \
    P(i_reply_echo, I_REPLY, false)                                                                \
    P(i_reply_traffic, I_REPLY, false)                                                             \
    P(i_error, I_ERROR, false)                                                                     \
    P(i_denied, I_DENIED, false)                                                                   \
    P(i_limit, I_LIMIT, false)                                                                     \
    P(i_tasks, I_TASKS, false)                                                                     \
    P(k_hand, K_HAND, false)                                                                       \
    P(k_broken, K_BROKEN, true)                                                                    \
    P(k_say, K_SAY, true)                                                                          \
    P(k_live, K_LIVE, false)                                                                       \
    P(k_do, K_DO, false)                                                                           \
    P(k_exec, K_EXEC, false)                                                                       \
    P(c_input, C_INPUT, true)                                                                      \
    P(c_stdin, C_STDIN, true)                                                                      \
    P(c_network, C_NETWORK, true)                                                                  \
    P(c_signal, C_SIGNAL, true)                                                                    \
    P(c_started, C_STARTED, true)                                                                  \
    P(c_want, C_WANT, true)                                                                        \
    P(c_output, C_OUTPUT, true)                                                                    \
    P(c_file, C_FILE, true)                                                                        \
    P(c_result, C_RESULT, true)                                                                    \
    P(c_error, C_ERROR, true)                                                                      \
    P(c_state, C_STATE, true)                                                                      \
    P(g_server, G_SERVER, false)                                                                   \
    P(g_config, G_CONFIG, false)                                                                   \
    P(g_attach, G_ATTACH, false)                                                                   \
    P(g_policy, G_POLICY, false)                                                                   \
    P(g_forget, G_FORGET, false)                                                                   \
    P(g_attached, G_ATTACHED, false)                                                               \
    P(g_in_force, G_IN_FORCE, false)                                                               \
    P(g_note, G_NOTE, false)                                                                       \
    P(g_counts, G_COUNTS, false)                                                                   \
    P(g_open, G_OPEN, false)                                                                       \
    P(a_ask, A_ASK, false)                                                                         \
    P(a_withdraw, A_WITHDRAW, false)                                                               \
    P(a_name, A_NAME, false)                                                                       \
    P(a_hello, A_HELLO, false)                                                                     \
    P(a_stands, A_STANDS, false)                                                                   \
    P(a_end, A_END, false)                                                                         \
    P(a_limits, A_LIMITS, false)                                                                   \
    P(a_verdict, A_VERDICT, false)                                                                 \
    P(a_result, A_RESULT, false)                                                                   \
    P(a_named, A_NAMED, false)                                                                     \
    P(a_helloed, A_HELLOED, false)                                                                 \
    P(a_close, A_CLOSE, false)                                                                     \
    P(u_relay, U_RELAY, false)                                                                     \
    P(u_close, U_CLOSE, false)                                                                     \
    P(u_named, U_NAMED, false)                                                                     \
    P(u_helloed, U_HELLOED, false)                                                                 \
    P(u_limits, U_LIMITS, false)                                                                   \
    P(u_name, U_NAME, false)                                                                       \
    P(u_hello, U_HELLO, false)                                                                     \
    P(u_end, U_END, false)                                                                         \
    P(g_lost, G_LOST, false)                                                                       \
    P(w_stranded, W_STRANDED, false)                                                               \
    P(i_bind, I_BIND, false)

/* The fields of each: F(since, kind, name, most), in the order in which they travel. New ones come
 * at the end, with the WIRE_VERSION that brought them.
 *   u32 u64  numbers; u32: at most `most`, unless that is 0
 *   str      a string of at most `most` bytes
 *   text     the same, cut when it is sent: words for people
 *   bytes    struct wire_bytes
 *   strs     struct wire_strs, a list of strings
 *   limits   struct limits (limits.h)
 *   fd       a descriptor; fd_or: one, or -1 for none
 *   fds      struct wire_fds, at most `most` descriptors
 *   fd_map   an array of `most` descriptors, of which any may be -1 */
#define WIRE_WHY  400 /* bytes of a reason */
#define WIRE_PATH 4095

#define w_make_fields(F) F(0, u32, profile, 0)
#define w_end_fields(F)  F(0, u64, sandbox, 0)
#define w_lost_fields(F) F(0, u64, sandbox, 0)
#define w_kernel_fields(F)                                                                         \
    F(0, u64, sandbox, 0)                                                                          \
    F(0, u32, number, 0)                                                                           \
    F(0, u64, memory_bytes, 0) /* not 0: the process has a control group of its own */             \
    F(0, u32, pids, 0)                                                                             \
    F(0, u32, cpus_percent, 0)
#define w_left_fields(F) F(0, u64, sandbox, 0) F(0, u32, number, 0)
#define w_shut_fields(F) F(0, u64, sandbox, 0) F(0, u32, number, 0)
#define w_keep_fields(F) F(0, u64, sandbox, 0) F(0, fd, journal, 0)
#define w_made_fields(F)                                                                           \
    F(0, u64, sandbox, 0)                                                                          \
    F(0, u32, profile, 0)                                                                          \
    F(0, u32, slot, 0)                                                                             \
    F(0, u32, version, 0) /* that its init and its kernels speak */                                \
    F(0, fd_map, fds, SANDBOX_FDS_)                                                                \
    F(0, fds, knobs, WIRE_MAX_FDS) /* first use of a slot only; later sandboxes have the same */
#define w_failed_fields(F) F(0, u32, profile, 0) F(0, text, why, WIRE_WHY)
#define w_exited_fields(F) F(0, u64, sandbox, 0) F(0, u32, number, 0) F(0, u32, status, 0)
#define w_kernel_made_fields(F)                                                                    \
    F(0, u64, sandbox, 0)                                                                          \
    F(0, u32, number, 0)                                                                           \
    F(0, fd_map, fds, KERNEL_OWNER_FDS)                                                            \
    F(0, fds, knobs, WIRE_MAX_FDS) /* if it has a group of its own */
#define w_kernel_failed_fields(F)                                                                  \
    F(0, u64, sandbox, 0) F(0, u32, number, 0) F(0, text, why, WIRE_WHY)
#define w_kept_fields(F)                                                                           \
    F(0, u64, sandbox, 0)                                                                          \
    F(0, u32, profile, 0)                                                                          \
    F(0, u32, slot, 0)                                                                             \
    F(0, u32, version, 0)                                                                          \
    F(0, u32, kernels, 0) /* W_KERNEL_MADE that follow */                                          \
    F(0, fd, journal, 0)                                                                           \
    F(0, fd_map, fds, SANDBOX_FDS_) /* of kernel 0: ends that are shut when it is gone */          \
    F(0, fds, knobs, WIRE_MAX_FDS)
#define w_gone_fields(F)     F(0, u64, sandbox, 0)
#define w_forget_fields(F)   F(0, u32, slot, 0)
#define w_stranded_fields(F) F(4, u64, bytes, 0)
#define w_profile_fields(F)                                                                        \
    F(0, u32, profile, 0)                                                                          \
    F(0, u32, state, PROFILE_RESTARTING)                                                           \
    F(0, text, what, 2047)                                                                         \
    F(0, text, modules, 4095) /* space separated */
#define w_layer_fields(F)                                                                          \
    F(0, text, name, 63) F(0, u32, state, 0) /* enum probe_state */ F(0, text, how, 255)
#define w_restarts_fields(F)                                                                       \
    F(0, u32, server, 0) F(0, u32, nurseries, 0) F(0, u32, zygotes, 0) F(3, u32, gate, 0)
#define w_reload_fields(F)                                                                         \
    F(0, u32, changed, 0) /* profiles, a bit each */                                               \
    F(0, fd, config, 0)

#define w_gate_fields(F) F(3, fd_or, gate, 0) /* none: the gate is gone, another will come */

#define l_config_fields(F) F(0, fd, config, 0) /* the warden's part */ F(0, fd, all, 0)

#define n_make_fields(F)   F(0, u64, sandbox, 0) F(0, u32, slot, 0) F(0, fds, procs, PROCS_FDS)
#define n_end_fields(F)    F(0, u64, sandbox, 0)
#define n_kernel_fields(F) F(0, u64, sandbox, 0) F(0, u32, number, 0) F(0, fds, procs, PROCS_FDS)
#define n_made_fields(F)   F(0, u64, sandbox, 0) F(0, fd_map, fds, SANDBOX_FDS_)
#define n_failed_fields(F) F(0, u64, sandbox, 0) F(0, text, why, WIRE_WHY)
#define n_exited_fields(F) F(0, u64, sandbox, 0) F(0, u32, number, 0) F(0, u32, status, 0)
#define n_kernel_made_fields(F)                                                                    \
    F(0, u64, sandbox, 0) F(0, u32, number, 0) F(0, fd_map, fds, KERNEL_OWNER_FDS)
#define n_kernel_failed_fields(F)                                                                  \
    F(0, u64, sandbox, 0) F(0, u32, number, 0) F(0, text, why, WIRE_WHY)
#define n_gone_fields(F) F(0, u64, sandbox, 0)
#define n_born_fields(F) F(0, u32, pid, 0)
#define n_state_fields(F)                                                                          \
    F(0, u32, state, PROFILE_RESTARTING) F(0, text, what, 2047) F(0, text, modules, 4095)

#define z_fork_fields(F)                                                                           \
    F(0, u64, sandbox, 0)                                                                          \
    F(0, u32, number, 0)                                                                           \
    F(0, u32, uid, 0)                                                                              \
    F(0, fd_map, fds, KERNEL_FDS_)                                                                 \
    F(0, fds, procs, PROCS_FDS)
#define z_ready_fields(F)  F(0, text, version, 63) F(0, text, modules, 4095)
#define z_broken_fields(F) F(0, text, why, 2047)
#define z_lost_fields(F)   F(0, text, why, WIRE_WHY)
#define z_forked_fields(F) F(0, u64, sandbox, 0) F(0, u32, number, 0) F(0, u32, pid, 0)
#define z_failed_fields(F) F(0, u64, sandbox, 0) F(0, u32, number, 0) F(0, text, why, WIRE_WHY)
#define z_exited_fields(F)                                                                         \
    F(0, u64, sandbox, 0) F(0, u32, number, 0) F(0, u32, pid, 0) F(0, u32, status, 0)

#define i_ready_fields(F)  F(0, fds, ours, SANDBOX_SNMP) F(0, fds, ends, KERNEL_END_FDS)
#define i_broken_fields(F) F(0, text, why, WIRE_WHY)
#define i_open_fields(F)                                                                           \
    F(0, u32, flags, 0) /* O_RDONLY, or O_WRONLY with O_CREAT… */                                \
    F(0, u32, mode, 0)                                                                             \
    F(0, str, path, WIRE_PATH)
#define i_stat_fields(F) F(0, str, path, WIRE_PATH) /* "": the workspace */
#define i_list_fields(F)                                                                           \
    F(0, str, path, WIRE_PATH)                                                                     \
    F(0, u32, recursive, 1)                                                                        \
    F(0, u32, most, 0)                                                                             \
    F(0, str, after, WIRE_PATH) /* the last page's last path */
#define i_mkdir_fields(F)  F(0, str, path, WIRE_PATH) F(0, u32, mode, 0) F(0, u32, parents, 1)
#define i_move_fields(F)   F(0, str, from, WIRE_PATH) F(0, str, to, WIRE_PATH)
#define i_chmod_fields(F)  F(0, str, path, WIRE_PATH) F(0, u32, mode, 0)
#define i_remove_fields(F) F(0, str, path, WIRE_PATH) F(0, u32, recursive, 1)
#define i_place_fields(F)                                                                          \
    F(0, str, path, WIRE_PATH)                                                                     \
    F(0, u32, mode, 0)                                                                             \
    F(0, u64, mtime_ns, 0) /* 0: as it is */                                                       \
    F(0, fd, file, 0)
#define i_link_fields(F)    F(0, str, target, WIRE_PATH) F(0, str, path, WIRE_PATH)
#define i_changes_fields(F) F(0, u32, most, 0) F(0, u32, depth, 64) F(0, u64, since_ns, 0)
#define i_signal_fields(F)  F(0, u32, number, 0) F(0, u32, signal, 0) F(0, u32, scope, SIGNAL_TREE)
#define i_limits_fields(F)  F(0, limits, limits, 0)
#define i_watch_fields(F)   F(0, limits, limits, 0)
#define i_echo_fields(F)    F(0, u64, value, 0)
#define i_left_fields(F)    F(0, fds, fds, WIRE_MAX_FDS)

/* The gate's channel of this sandbox; none: the gate is gone, asks wait for another. */
#define i_network_fields(F) F(3, fd_or, gate, 0)
#define i_bind_fields(F)                                                                           \
    F(5, str, allowed,                                                                             \
      WIRE_PATH) /* one of the operator's (bind_allow), and what is meant in it */                 \
    F(5, str, below, WIRE_PATH)                                                                    \
    F(5, str, path, WIRE_PATH) /* in the workspace */                                              \
    F(5, u32, writable, 1)

#define i_reply_fd_fields(F)    F(0, fd, fd, 0)       /* I_OPEN, I_TEMP, I_TTY */
#define i_reply_entry_fields(F) F(0, bytes, entry, 0) /* I_STAT: a record of wire/entry.h */
#define i_reply_list_fields(F)  /* I_LIST: such records; I_CHANGES: records of init/list.h */      \
    F(0, u32, count, 0) F(0, u32, cut, 1) F(0, fd, records, 0)
#define i_reply_place_fields(F)   F(0, u32, replaced, 1)
#define i_reply_usage_fields(F)   F(0, u64, memory_peak, 0) F(0, u64, cpu_us, 0)
#define i_reply_echo_fields(F)    F(0, u64, value, 0)
#define i_reply_traffic_fields(F) F(3, bytes, records, 0) /* of wire/traffic.h */
#define i_error_fields(F)         F(0, u32, errnum, 0) F(0, text, why, 300)
#define i_denied_fields(F)                                                                         \
    F(0, u32, process, 0) F(0, text, op, 200) F(0, text, detail, 400) F(0, text, rule, 100)
#define i_limit_fields(F) F(0, u32, kind, LIMIT_KINDS_ - 1)
#define i_tasks_fields(F) F(0, u32, tasks, 0)

#define k_hand_fields(F)                                                                           \
    F(0, u32, number, 0) F(0, u32, pid, 0) F(0, fd, listener, 0) /* of seccomp */
#define k_broken_fields(F) F(0, text, why, WIRE_WHY)
#define k_say_fields(F)                                                                            \
    F(0, bytes, json, 0) /* empty when it is in the file */                                        \
    F(0, fd_or, file, 0) /* a regular one, of at most LIVE_MAX bytes */
#define k_do_fields(F)   F(0, bytes, json, 0) F(0, fd_or, file, 0)
#define k_live_fields(F) F(0, limits, limits, 0) /* 0: not by rlimit */
#define k_exec_fields(F)                                                                           \
    F(0, limits, limits, 0) /* as k_live */                                                        \
    F(0, u32, rows, 0)      /* 0: no terminal */                                                   \
    F(0, u32, columns, 0)                                                                          \
    F(0, str, directory, 0)                                                                        \
    F(0, strs, args, 0)                                                                            \
    F(0, strs, env, 0)       /* K=V */                                                             \
    F(0, fd_or, terminal, 0) /* of I_TTY */

#define c_input_fields(F)                                                                          \
    F(0, str, path, WIRE_PATH)                                                                     \
    F(0, u32, mode, 0)                                                                             \
    F(0, fd, file, 0) /* a regular one, or a memfd                                                 \
                       */
#define c_stdin_fields(F)   F(0, bytes, data, 0)
#define c_signal_fields(F)  F(0, u32, signal, 31)
#define c_network_fields(F) F(3, str, rules, 0) /* as net/policy_json.h reads a text */
#define c_started_fields(F) F(0, str, id, 64)
#define c_want_fields(F)    F(0, u32, bytes, 0)
#define c_output_fields(F)  F(0, u32, stream, 2) F(0, bytes, data, 0)
#define c_file_fields(F)    F(0, str, path, WIRE_PATH) F(0, u64, size, 0) F(0, fd, file, 0)
#define c_result_fields(F)                                                                         \
    F(0, u32, status, 0) /* for a shell */                                                         \
    F(0, str, why, 0)    /* "" when the program just ended */                                      \
    F(0, bytes, json, 0) /* the result; empty when it is in the file */                            \
    F(0, fd_or, file, 0)
#define c_error_fields(F)                                                                          \
    F(0, u32, retryable, 1) F(0, str, kind, 64) F(0, text, message, 0) F(0, text, remedy, 0)
#define c_state_fields(F) F(0, fd, json, 0)

/* The gate. A policy is as net/policy.h encodes it. Addresses are 16 bytes, those of IPv4 mapped
 * (net/addr.h); connections have the id of their A_ASK, for as long as the sandbox lives. */
#define WIRE_NAME  253 /* bytes of a domain name */
#define WIRE_RULE  100
#define WIRE_WORDS 400

#define g_server_fields(F) F(3, fd, server, 0)
#define g_config_fields(F) F(3, fd, config, 0) F(3, fd, resolv, 0) /* resolv.conf */
#define g_attach_fields(F)                                                                         \
    F(3, u64, sandbox, 0)                                                                          \
    F(3, fd, policy, 0)  /* a sealed memfd */                                                      \
    F(4, u64, tenant, 0) /* the same number for all sandboxes of a tenant */
#define g_policy_fields(F) F(3, u64, sandbox, 0) F(3, u32, serial, 0) F(3, fd, policy, 0)
#define g_forget_fields(F) F(3, u64, sandbox, 0)
#define g_attached_fields(F)                                                                       \
    F(3, u64, sandbox, 0) F(3, fd_or, channel, 0) F(3, text, why, WIRE_WHY) /* for init */
#define g_in_force_fields(F) F(3, u64, sandbox, 0) F(3, u32, serial, 0) F(3, u32, closed, 0)
#define g_note_fields(F)                                                                           \
    F(3, u64, sandbox, 0)                                                                          \
    F(3, u32, process, 0)                                                                          \
    F(3, u32, refused, 1)                                                                          \
    F(3, text, target, 300) /* "pypi.org (151.101.0.223) port 443", "name pypi.org" */             \
    F(3, text, rule, WIRE_RULE)
#define g_counts_fields(F)                                                                         \
    F(3, u64, asks, 0)                                                                             \
    F(3, u64, refused, 0)                                                                          \
    F(3, u64, connect_errors, 0)                                                                   \
    F(3, u64, names, 0)                                                                            \
    F(3, u64, names_refused, 0)                                                                    \
    F(3, u64, names_failed, 0)                                                                     \
    F(3, u64, open, 0)                                                                             \
    F(3, u64, bytes_out, 0)                                                                        \
    F(3, u64, bytes_in, 0)
#define g_open_fields(F) F(3, u64, sandbox, 0) F(3, u32, connections, 0)
#define g_lost_fields(F) F(4, u64, sandbox, 0)

#define a_ask_fields(F)                                                                            \
    F(3, u32, id, 0) F(3, u32, process, 0) F(3, u32, port, 65535) F(3, bytes, address, 16)
#define a_withdraw_fields(F) F(3, u32, id, 0)
#define a_name_fields(F)                                                                           \
    F(3, u32, id, 0) F(3, u32, process, 0) F(3, u32, type, 65535) F(3, str, name, WIRE_NAME)
#define a_hello_fields(F) F(3, u32, id, 0) F(3, u32, check, 2) F(3, str, name, WIRE_NAME)
#define a_stands_fields(F)                                                                         \
    F(3, u32, id, 0)                                                                               \
    F(3, u32, port, 65535)                                                                         \
    F(3, bytes, address, 16)                                                                       \
    F(3, str, rule, WIRE_RULE)                                                                     \
    F(3, str, name, WIRE_NAME) /* that it said last; "" for none */                                \
    F(3, u32, check, 2)        /* enum net_check: what the usher looks at */
#define a_end_fields(F) F(3, u32, id, 0) F(3, u64, bytes_out, 0) F(3, u64, bytes_in, 0)
#define a_limits_fields(F)                                                                         \
    F(3, u32, connections, 0)                                                                      \
    F(3, u64, bytes, 0)       /* 0: no bound */                                                    \
    F(3, u32, unreachable, 1) /* refused names get the sentinel address, and it ENETUNREACH */
#define a_verdict_fields(F)                                                                        \
    F(3, u32, id, 0)                                                                               \
    F(3, u32, errnum, 0)                                                                           \
    F(3, u32, check, 2) /* enum net_check */                                                       \
    F(3, text, rule, WIRE_RULE)                                                                    \
    F(3, text, op, 200) /* "": a refusal that is not told */                                       \
    F(3, text, detail, WIRE_WORDS)
#define a_result_fields(F) F(3, u32, id, 0) F(3, u32, errnum, 0) F(3, fd_or, socket, 0)
#define a_named_fields(F)                                                                          \
    F(3, u32, id, 0)                                                                               \
    F(3, u32, rcode, 15)                                                                           \
    F(3, u32, ttl, 0)                                                                              \
    F(3, bytes, addresses, 512) /* 16 bytes each */                                                \
    F(3, text, rule, WIRE_RULE)                                                                    \
    F(3, text, op, 200) /* "": not refused */                                                      \
    F(3, text, detail, WIRE_WORDS)
#define a_helloed_fields(F)                                                                        \
    F(3, u32, id, 0)                                                                               \
    F(3, u32, allowed, 1)                                                                          \
    F(3, text, rule, WIRE_RULE)                                                                    \
    F(3, text, op, 200)                                                                            \
    F(3, text, detail, WIRE_WORDS)
#define a_close_fields(F)                                                                          \
    F(3, u32, id, 0) F(3, text, rule, WIRE_RULE) F(3, text, op, 200) F(3, text, detail, WIRE_WORDS)

#define u_relay_fields(F)                                                                          \
    F(3, u32, id, 0)                                                                               \
    F(3, u32, slot, 0) /* of the counters that it shares with init */                              \
    F(3, u32, check, 2)                                                                            \
    F(3, fd, inside, 0)                                                                            \
    F(3, fd, outside, 0)
#define u_close_fields(F) F(3, u32, id, 0)
#define u_named_fields(F)                                                                          \
    F(3, u32, id, 0) F(3, u32, rcode, 15) F(3, u32, ttl, 0) F(3, bytes, addresses, 512)
#define u_helloed_fields(F) F(3, u32, id, 0) F(3, u32, allowed, 1)
#define u_limits_fields(F)  F(3, u64, bytes, 0)
#define u_name_fields(F)                                                                           \
    F(3, u32, id, 0)                                                                               \
    F(3, u32, type, 65535)                                                                         \
    F(3, u32, port, 65535) /* of who asks */                                                       \
    F(3, u32, family, 0) F(3, str, name, WIRE_NAME)
#define u_hello_fields(F) F(3, u32, id, 0) F(3, u32, check, 2) F(3, str, name, WIRE_NAME)
#define u_end_fields(F)   F(3, u32, id, 0) F(3, u32, over, 1) /* the bound on bytes was met */
