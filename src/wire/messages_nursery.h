#pragma once
/* Between the warden (W) and a nursery (N), and between a nursery and its zygotes (Z). See
 * messages.h. */

#define NURSERY_MESSAGES(X)                                                                        \
    /* W→N */                                                                                    \
    X(N_MAKE, 50, 2)                                                                               \
    X(N_END, 51, 2)                                                                                \
    X(N_KERNEL, 52, 2)                                                                             \
    /* N→W */                                                                                    \
    X(N_MADE, 60, 2)                                                                               \
    X(N_FAILED, 61, 2)                                                                             \
    X(N_EXITED, 62, 2)                                                                             \
    X(N_KERNEL_MADE, 63, 2)                                                                        \
    X(N_KERNEL_FAILED, 64, 2)                                                                      \
    X(N_GONE, 65, 2)                                                                               \
    X(N_BORN, 66, 2)  /* the nursery proper, a child of the warden */                              \
    X(N_STATE, 67, 2) /* of the profile */                                                         \
    /* N→Z */                                                                                    \
    X(Z_FORK, 80, 2)                                                                               \
    /* Z→N */                                                                                    \
    X(Z_READY, 85, 2)                                                                              \
    X(Z_BROKEN, 86, 2) /* the profile cannot be loaded; the zygote exits */                        \
    X(Z_LOST, 87, 2)   /* no interpreter could be started; the zygote exits */                     \
    X(Z_FORKED, 88, 2)                                                                             \
    X(Z_FAILED, 89, 2)                                                                             \
    X(Z_EXITED, 90, 2)

#define NURSERY_PAYLOADS(P)                                                                        \
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
    P(z_exited, Z_EXITED, false)

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
