#pragma once
/* What init (I) of a sandbox hears and says: from its nursery (N), which it tells that the sandbox
 * is ready, and from the server (S), whose questions it answers. See messages.h. */

#define INIT_MESSAGES(X)                                                                           \
    /* I→N */                                                                                    \
    X(I_READY, 100, 2)                                                                             \
    X(I_BROKEN, 101, 2)                                                                            \
    /* N→I, on the same socket, answered by I_READY or I_BROKEN */                               \
    X(I_MORE, 102, 2) /* make the ends of one more process */                                      \
    /* S→I, each answered by I_REPLY or I_ERROR in order */                                      \
    X(I_OPEN, 110, 2)                                                                              \
    X(I_STAT, 111, 2)                                                                              \
    X(I_LIST, 112, 2)                                                                              \
    X(I_MKDIR, 113, 2)                                                                             \
    X(I_MOVE, 114, 2) /* nothing is replaced */                                                    \
    X(I_CHMOD, 115, 2)                                                                             \
    X(I_REMOVE, 116, 2)                                                                            \
    X(I_TEMP, 117, 2)    /* a file without a name, to write to */                                  \
    X(I_TTY, 118, 2)     /* a new terminal: the end without a screen */                            \
    X(I_PLACE, 119, 2)   /* gives a file of I_TEMP its name, over another file */                  \
    X(I_LINK, 120, 2)    /* a symlink, over another file */                                        \
    X(I_CHANGES, 121, 2) /* regular files that changed since */                                    \
    X(I_KILL, 122, 2)    /* SIGKILL to all but init, until none is left */                         \
    X(I_SIGNAL, 123, 2)  /* to a kernel or command */                                              \
    X(I_LIMITS, 124, 2)  /* new limits of the sandbox as a whole */                                \
    X(I_WATCH, 125, 2)   /* no cgroups here: watch these limits */                                 \
    X(I_USAGE, 126, 2)   /* no cgroups here: what was used */                                      \
    X(I_ECHO, 127, 2)    /* sent back when all before it is answered, an earlier server's too */   \
    X(I_LEFT, 128, 2)    /* fds, or none: of a program, unwanted, to be closed when the next       \
                            message comes, for by then the server has closed its own; no reply */  \
    X(I_NETWORK, 129, 3) /* from now on connects to outside are asked for on this channel */       \
    X(I_TRAFFIC, 130, 3) /* what went through the network, by rule */                              \
    X(I_BIND, 131, 5)    /* a directory of the host, in the workspace from now on */               \
    X(I_CONNECT, 132, 7) /* to what listens inside: a socket on its way there */                   \
    X(I_PORTS, 133, 7)   /* where something listens inside */                                      \
    X(I_TREE, 134, 8)    /* the tree of a tenant's profile, at ROOT_TREE from now on */            \
    /* I→S */                                                                                    \
    X(I_REPLY, 140, 2) /* one of i_reply_… below, as the question asks, or nothing */            \
    X(I_ERROR, 141, 2)                                                                             \
    X(I_DENIED, 142, 2) /* unasked: a refusal to be told */                                        \
    X(I_LIMIT, 143, 2)  /* unasked: init ended the sandbox for it; for PIDS only the surplus */    \
    X(I_TASKS, 144, 2)  /* unasked: processes and threads now (live, no cgroups) */                \
    X(I_NET, 145, 2)    /* unasked: a socket reaches the network namespace */

#define INIT_PAYLOADS(P)                                                                           \
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
    P(i_bind, I_BIND, false)                                                                       \
    P(i_tree, I_TREE, false)                                                                       \
    P(i_connect, I_CONNECT, false)                                                                 \
    P(i_reply_ports, I_REPLY, false)

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
    F(5, str, allowed, WIRE_PATH) /* one of the operator's (bind_allow) */                         \
    F(5, str, below, WIRE_PATH)   /* what is meant in it */                                        \
    F(5, str, path, WIRE_PATH)    /* in the workspace */                                           \
    F(5, u32, writable, 1)
#define i_tree_fields(F)    F(8, str, id, 64)
#define i_connect_fields(F) F(7, u32, port, 65535) F(7, u32, ipv6, 1)

#define i_reply_fd_fields(F)    F(0, fd, fd, 0)       /* I_OPEN, I_TEMP, I_TTY, I_CONNECT */
#define i_reply_entry_fields(F) F(0, bytes, entry, 0) /* I_STAT: a record of wire/entry.h */
#define i_reply_list_fields(F)  /* I_LIST: such records; I_CHANGES: records of init/list.h */      \
    F(0, u32, count, 0) F(0, u32, cut, 1) F(0, fd, records, 0)
#define i_reply_place_fields(F)   F(0, u32, replaced, 1)
#define i_reply_usage_fields(F)   F(0, u64, memory_peak, 0) F(0, u64, cpu_us, 0)
#define i_reply_echo_fields(F)    F(0, u64, value, 0)
#define i_reply_traffic_fields(F) F(3, bytes, records, 0)                 /* of wire/traffic.h */
#define i_reply_ports_fields(F)   F(7, u32, cut, 1) F(7, bytes, ports, 0) /* uint16_t, ascending */
#define i_error_fields(F)         F(0, u32, errnum, 0) F(0, text, why, 300)
#define i_denied_fields(F)                                                                         \
    F(0, u32, process, 0) F(0, text, op, 200) F(0, text, detail, 400) F(0, text, rule, 100)
#define i_limit_fields(F) F(0, u32, kind, LIMIT_KINDS_ - 1)
#define i_tasks_fields(F) F(0, u32, tasks, 0)
