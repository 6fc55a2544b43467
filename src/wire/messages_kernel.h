#pragma once
/* Between the server (S) and a kernel (K), and the one message of a kernel to init (I). What comes
 * from a kernel comes from a hostile process. See messages.h. */

#define KERNEL_MESSAGES(X)                                                                         \
    /* K→I */                                                                                    \
    X(K_HAND, 160, 2) /* once, before any user code */                                             \
    /* K→S */                                                                                    \
    X(K_READY, 165, 2)  /* waiting for code */                                                     \
    X(K_BROKEN, 166, 2) /* could not enter its sandbox */                                          \
    X(K_DONE, 167, 2)   /* the execution's end, from a hostile process */                          \
    X(K_SAY, 168, 2)    /* of a live kernel */                                                     \
    /* S→K */                                                                                    \
    X(K_RUN, 175, 2)                                                                               \
    X(K_LIVE, 176, 2) /* be a live kernel */                                                       \
    X(K_DO, 177, 2)   /* to a live kernel; see py/cell/live.py */                                  \
    X(K_EXEC, 178, 2) /* be a command */

#define KERNEL_PAYLOADS(P)                                                                         \
    P(k_hand, K_HAND, false)                                                                       \
    P(k_broken, K_BROKEN, true)                                                                    \
    P(k_say, K_SAY, true)                                                                          \
    P(k_live, K_LIVE, false)                                                                       \
    P(k_do, K_DO, false)                                                                           \
    P(k_exec, K_EXEC, false)

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
