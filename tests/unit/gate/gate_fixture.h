#pragma once
/* The real cloche-gate, with its filter, in a user and network namespace of our own that has
 * nothing but a loopback; we are its warden, its server, its inits, and its name server. */

#include "net/addr.h"
#include "net/bounds.h"
#include "wire/codec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <cmocka.h>

#define TARGET "198.51.100.1" /* the one address of the machine besides loopback */

struct rig {
    pid_t pid;
    int warden, server; /* our ends */
    int dns;            /* UDP, bound */
    int dns_tcp;        /* listening, same port */
    uint16_t dns_port;
    int listener; /* TCP on TARGET */
    uint16_t port;
    struct wire_out out;
    struct wire_in in;
    int socket; /* borrowed from `in`: what came with the last rig_verdict; or -1 */
};

/* Before cmocka: enters the namespaces. False: this machine gives none. */
bool rig_enter(void);
/* One more address of the machine; `alias` is "lo:2" and the like. */
bool rig_add_address(const char *alias, const char *address);
/* Around each test. */
int rig_setup(void **state);
int rig_teardown(void **state);
#define WITH_GATE(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

void rig_send(struct rig *r, int fd);
/* The next message; its type is in r->in. Fails the test when none comes. */
void rig_recv(struct rig *r, int fd);
/* The same, of that type. */
void rig_expect(struct rig *r, int fd, enum wire_type type);
bool rig_is_quiet(int fd);
/* Its channel, after its A_LIMITS; `policy` as users write it. */
int rig_attach(struct rig *r, uint64_t sandbox, const char *policy);
int rig_attach_of(struct rig *r, uint64_t tenant, uint64_t sandbox, const char *policy);
int rig_policy_fd(const char *policy);
/* The gate's part of a configuration with these name servers. */
void rig_pack_config(const char *servers, int *ret_fd);
void rig_meet(struct rig *r); /* a new server */

void rig_prepare_ask(struct rig *r, uint32_t id, const char *address,
                     uint16_t port); /* in r->out */
void rig_ask(struct rig *r, int chan, uint32_t id, const char *address, uint16_t port);
void rig_name(struct rig *r, int chan, uint32_t id, const char *name, uint16_t type);
/* Until something can be read, or the test fails. */
void rig_wait(int fd);
/* The answer to an ask: 0, or why not. */
uint32_t rig_verdict(struct rig *r, int chan, uint32_t id);
/* What came of it: the socket, or minus the error. */
int rig_result(struct rig *r, int chan, uint32_t id);
/* Asks for the listener, and gets a socket. */
int rig_connected(struct rig *r, int chan, uint32_t id);
/* From here on no SYN to the listener is answered. */
void rig_go_silent(const struct rig *r);
