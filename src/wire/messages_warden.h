#pragma once
/* Between the server (S) and the warden (W), and from the supervisor to the warden on its life line
 * (L). See messages.h. */

#define WARDEN_MESSAGES(X)                                                                         \
    /* S→W */                                                                                    \
    X(W_MAKE, 1, 2)   /* a sandbox, please */                                                      \
    X(W_END, 2, 2)    /* kill it, whatever it does */                                              \
    X(W_LOST, 3, 2)   /* the same: it, or the knobs of its slot, did not come whole */             \
    X(W_KERNEL, 4, 2) /* one more process in a live sandbox */                                     \
    X(W_LEFT, 5, 2)   /* the control group of a process that ended is read */                      \
    X(W_SHUT, 6, 2)   /* the stdin of a process is at its end: the warden's copy goes too */       \
    X(W_KEEP, 7, 2) /* the sandbox outlives this server; the next one gets it, and its journal */  \
    /* W→S */                                                                                    \
    X(W_MADE, 10, 2)                                                                               \
    X(W_FAILED, 11, 2) /* no sandbox this time */                                                  \
    X(W_EXITED, 12, 2) /* a kernel or command ended */                                             \
    X(W_KERNEL_MADE, 13, 2)                                                                        \
    X(W_KERNEL_FAILED, 14, 2)                                                                      \
    X(W_KEPT, 15, 2)    /* what an earlier server kept; one W_KERNEL_MADE for each further process \
                           follows, and W_EXITED of those that ended meanwhile */                  \
    X(W_GONE, 16, 2)    /* all of the sandbox is dead */                                           \
    X(W_FORGET, 17, 2)  /* the slot's control group is gone: let its knobs go too */               \
    X(W_PROFILE, 18, 2) /* what a profile's nursery said of itself */                              \
    X(W_LAYER, 19, 2)   /* what the machine gives of one layer of isolation */                     \
    X(W_RESTARTS, 20, 2) /* how many so far; the first one comes after the last W_KEPT */          \
    X(W_RELOAD, 21, 2)   /* the configuration anew */                                              \
    X(W_GATE, 22, 3)     /* a channel to the gate; a new one whenever gate or server are new */    \
    X(W_STRANDED, 23, 4) /* memory of ended sandboxes that somebody still holds */                 \
    /* the supervisor→W */                                                                       \
    X(L_CONFIG, 40, 2) /* the configuration anew */

#define WARDEN_PAYLOADS(P)                                                                         \
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
    P(w_stranded, W_STRANDED, false)

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
