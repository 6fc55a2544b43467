#pragma once
/* Between the command line (C) and the engine's socket in the server (S). See messages.h. */

#define CLIENT_MESSAGES(X)                                                                         \
    /* C→S */                                                                                    \
    X(C_INPUT, 190, 2) /* before C_RUN, any number */                                              \
    X(C_RUN, 191, 2)                                                                               \
    X(C_STDIN, 192, 2)   /* empty means end of file */                                             \
    X(C_SIGNAL, 193, 2)  /* Ctrl-C at the client */                                                \
    X(C_INFO, 194, 2)    /* ask for the engine's state */                                          \
    X(C_NETWORK, 195, 3) /* before C_RUN: what it may reach */                                     \
    /* S→C */                                                                                    \
    X(C_STARTED, 200, 2)                                                                           \
    X(C_WANT, 201, 2) /* that much more of stdin may come */                                       \
    X(C_OUTPUT, 202, 2)                                                                            \
    X(C_FILE, 203, 2)                                                                              \
    X(C_RESULT, 204, 2)                                                                            \
    X(C_ERROR, 205, 2)                                                                             \
    X(C_STATE, 206, 2)

#define CLIENT_PAYLOADS(P)                                                                         \
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
    P(c_state, C_STATE, true)

#define c_input_fields(F)                                                                          \
    F(0, str, path, WIRE_PATH)                                                                     \
    F(0, u32, mode, 0)                                                                             \
    F(0, fd, file, 0) /* a regular one, or a memfd */
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
