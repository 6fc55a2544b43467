#pragma once
/* The network of sandboxes. G: the warden (W) and the server (S) with the gate (G); A: init (I)
 * asks the gate, on a channel for each sandbox; U: init and the usher (U). See messages.h.
 *
 * A policy is as net/policy.h encodes it. Addresses are 16 bytes, those of IPv4 mapped
 * (net/addr.h); connections have the id of their A_ASK, for as long as the sandbox lives. */

#define NETWORK_MESSAGES(X)                                                                        \
    /* W→G */                                                                                    \
    X(G_SERVER, 210, 3) /* a new server, and the channel to it */                                  \
    X(G_CONFIG, 211, 3) /* the configuration anew */                                               \
    /* S→G */                                                                                    \
    X(G_ATTACH, 212, 3) /* a sandbox gets a network; answered by G_ATTACHED */                     \
    X(G_POLICY, 213, 3) /* another policy; answered by G_IN_FORCE */                               \
    X(G_FORGET, 214, 3) /* the sandbox is gone */                                                  \
    /* G→S */                                                                                    \
    X(G_ATTACHED, 215, 3)                                                                          \
    X(G_IN_FORCE, 216, 3)                                                                          \
    X(G_NOTE, 217, 3)   /* for the audit log: the first use of a rule's target, or a refusal */    \
    X(G_COUNTS, 218, 3) /* since the gate began; once a second at most */                          \
    X(G_OPEN, 219, 3)   /* how many outside sockets a sandbox has, in steps */                     \
    X(G_LOST, 243, 4)   /* the channel of a sandbox broke; it asks nothing until it is attached */ \
    /* I→G, on the channel of one sandbox */                                                     \
    X(A_ASK, 220, 3)      /* may this be connected to? answered by A_VERDICT */                    \
    X(A_WITHDRAW, 221, 3) /* the program gave up before A_RESULT came */                           \
    X(A_NAME, 222, 3)     /* a question for a name; answered by A_NAMED */                         \
    X(A_HELLO, 223, 3)    /* the name that a connection says; answered by A_HELLOED */             \
    X(A_STANDS, 224, 3)   /* to a new gate: a connection that an earlier one made */               \
    X(A_END, 225, 3)      /* a connection is over */                                               \
    /* G→I */                                                                                    \
    X(A_LIMITS, 226, 3)  /* first, and with each policy */                                         \
    X(A_VERDICT, 227, 3) /* A_RESULT comes after it, if it has no errno and no socket */           \
    X(A_RESULT, 228, 3)  /* the outside socket, connected, or why there is none */                 \
    X(A_NAMED, 229, 3)                                                                             \
    X(A_HELLOED, 230, 3)                                                                           \
    X(A_CLOSE, 231, 3) /* no longer allowed: reset it, both ways */                                \
    /* I→U */                                                                                    \
    X(U_RELAY, 235, 3) /* copy between these two */                                                \
    X(U_CLOSE, 236, 3)                                                                             \
    X(U_NAMED, 237, 3)                                                                             \
    X(U_HELLOED, 238, 3)                                                                           \
    X(U_LIMITS, 239, 3)                                                                            \
    /* U→I */                                                                                    \
    X(U_NAME, 240, 3)                                                                              \
    X(U_HELLO, 241, 3)                                                                             \
    X(U_END, 242, 3)

#define NETWORK_PAYLOADS(P)                                                                        \
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
    P(g_lost, G_LOST, false)

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
    F(3, str, name, WIRE_NAME) /* what the connection said last; "" for none */                    \
    F(3, u32, check, 2)        /* enum net_check: what the usher looks at */
#define a_end_fields(F) F(3, u32, id, 0) F(3, u64, bytes_out, 0) F(3, u64, bytes_in, 0)
#define a_limits_fields(F)                                                                         \
    F(3, u32, connections, 0)                                                                      \
    F(3, u64, bytes, 0)       /* 0: no bound */                                                    \
    F(3, u32, unreachable, 1) /* a refused name gets the sentinel address, which is ENETUNREACH */
#define a_verdict_fields(F)                                                                        \
    F(3, u32, id, 0)                                                                               \
    F(3, u32, errnum, 0)                                                                           \
    F(3, u32, check, 2) /* enum net_check */                                                       \
    F(3, text, rule, WIRE_RULE)                                                                    \
    F(3, text, op, 200) /* "": a refusal that is not told */                                       \
    F(3, text, detail, WIRE_WORDS)                                                                 \
    F(6, fd_or, socket, 0) /* connected already: no A_RESULT comes */
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
