/* See gate_fixture.h. */

#include "gate_fixture.h"

#include "base/buf.h"
#include "base/fd.h"
#include "config/config.h"
#include "net/policy_json.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAIT_MS 60000 /* when nothing came until then, nothing comes */

bool rig_add_address(const char *alias, const char *address) {
    AUTO_FD fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq r = {.ifr_name = ""};
    struct sockaddr_in a = {.sin_family = AF_INET};
    snprintf(r.ifr_name, sizeof r.ifr_name, "%s", alias);
    inet_pton(AF_INET, address, &a.sin_addr);
    memcpy(&r.ifr_addr, &a, sizeof a);
    return fd >= 0 && ioctl(fd, SIOCSIFADDR, &r) == 0;
}

static bool loopback_up(void) {
    AUTO_FD fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq r = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    return fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &r) == 0 && rig_add_address("lo:1", TARGET);
}

bool rig_enter(void) {
    char map[64];
    struct err e;
    uid_t uid = getuid();
    gid_t gid = getgid();
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
        return false;
    (void)file_write_at(AT_FDCWD, "/proc/self/setgroups", "deny", &e);
    snprintf(map, sizeof map, "0 %u 1", uid);
    if (file_write_at(AT_FDCWD, "/proc/self/uid_map", map, &e) < 0)
        return false;
    snprintf(map, sizeof map, "0 %u 1", gid);
    return file_write_at(AT_FDCWD, "/proc/self/gid_map", map, &e) == 0 && loopback_up();
}

static int bound(int type, const char *address, uint16_t *port) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(*port)};
    inet_pton(AF_INET, address, &a.sin_addr);
    socklen_t len = sizeof a;
    int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    if (type == SOCK_STREAM)
        assert_int_equal(listen(fd, 512), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
    *port = ntohs(a.sin_port);
    return fd;
}

static _Noreturn void become_gate(int warden, int config, int resolv) {
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 32);
    const int from[] = {warden, config, resolv};
    int moved[3];
    if (n < 0)
        _exit(126);
    path[n] = '\0';
    for (int i = 0; i < 3; i++) { /* build/tests/unit/test_x */
        char *slash = strrchr(path, '/');
        if (slash)
            *slash = '\0';
    }
    snprintf(path + strlen(path), 32, "/cloche-gate");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int i = 0; i < 3; i++)
        moved[i] = fcntl(from[i], F_DUPFD, 64);
    for (int i = 0; i < 3; i++)
        dup2(moved[i], 3 + i);
    close_range(6, ~0u, 0);
    execl(path, "cloche-gate", (char *)NULL);
    _exit(127);
}

void rig_meet(struct rig *r) {
    int pair[2];
    struct err e;
    fd_close(&r->server);
    assert_int_equal(wire_pair(pair, &e), 0);
    g_server_put(&r->out, &(struct g_server){.server = pair[0]});
    rig_send(r, r->warden);
    close(pair[0]);
    r->server = pair[1];
}

void rig_pack_config(const char *servers, int *ret_fd) {
    struct err e;
    const struct config c = {.log_level = 1,
                             .log_format = (char *)"logfmt",
                             .network_resolvers = (char *)(uintptr_t)servers};
    const struct config_part part = {.reader = CONFIG_GATE};
    assert_int_equal(config_pack(&c, &part, ret_fd, &e), 0);
}

int rig_setup(void **state) {
    struct rig *r = xcalloc(1, sizeof *r);
    char servers[64];
    int pair[2];
    AUTO_FD config = -1;
    struct err e;
    r->server = r->socket = -1;
    r->dns = bound(SOCK_DGRAM, "127.0.0.1", &r->dns_port);
    r->dns_tcp = bound(SOCK_STREAM, "127.0.0.1", &r->dns_port);
    r->listener = bound(SOCK_STREAM, TARGET, &r->port);
    snprintf(servers, sizeof servers, "127.0.0.1:%u", r->dns_port);
    rig_pack_config(servers, &config);
    assert_int_equal(wire_pair(pair, &e), 0);
    AUTO_FD resolv = open("/dev/null", O_RDONLY | O_CLOEXEC);
    r->pid = fork();
    if (r->pid == 0)
        become_gate(pair[1], config, resolv);
    close(pair[1]);
    r->warden = pair[0];
    rig_meet(r);
    *state = r;
    return 0;
}

int rig_teardown(void **state) {
    struct rig *r = *state;
    int status;
    close(r->warden); /* its end of file is the gate's end */
    assert_int_equal(waitpid(r->pid, &status, 0), r->pid);
    assert_int_equal(status, 0);
    fd_close(&r->server);
    close(r->dns);
    close(r->dns_tcp);
    close(r->listener);
    wire_in_done(&r->in);
    free(r);
    return 0;
}

void rig_wait(int fd) {
    struct pollfd p = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, WAIT_MS), 1);
}

bool rig_is_quiet(int fd) {
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0) == 0;
}

void rig_send(struct rig *r, int fd) {
    struct err e;
    if (wire_send(fd, &r->out, &e) != WIRE_SENT)
        fail_msg("%s", e.text);
}

void rig_recv(struct rig *r, int fd) {
    struct err e = {.text = ""};
    wire_in_done(&r->in);
    r->in = (struct wire_in){0};
    rig_wait(fd);
    enum wire_got got = wire_recv(fd, &r->in, &e);
    if (got != WIRE_GOT)
        fail_msg("the gate closed the channel (%d) %s", got, e.text);
}

void rig_expect(struct rig *r, int fd, enum wire_type type) {
    rig_recv(r, fd);
    if (r->in.type != type)
        fail_msg("%s came, not %s", wire_type_name(r->in.type), wire_type_name(type));
}

int rig_policy_fd(const char *policy) {
    struct err e;
    int fd;
    AUTO_NET_POLICY p = NET_POLICY_INIT;
    AUTO_BUF b = BUF_INIT;
    if (net_policy_from_text(policy, strlen(policy), NULL, "network", &p, &e) < 0)
        fail_msg("%s", e.text);
    net_policy_encode(&p, &b);
    assert_int_equal(memfd_of("policy", b.data, b.len, &fd, &e), 0);
    return fd;
}

int rig_attach(struct rig *r, uint64_t sandbox, const char *policy) {
    return rig_attach_of(r, 0, sandbox, policy);
}

int rig_attach_of(struct rig *r, uint64_t tenant, uint64_t sandbox, const char *policy) {
    struct g_attached m;
    struct a_limits limits;
    struct err e;
    AUTO_FD fd = rig_policy_fd(policy);
    g_attach_put(&r->out, &(struct g_attach){.sandbox = sandbox, .policy = fd, .tenant = tenant});
    rig_send(r, r->server);
    do /* others may come before */
        rig_recv(r, r->server);
    while (r->in.type != WIRE_G_ATTACHED);
    assert_int_equal(g_attached_get(&r->in, &m, &e), 0);
    assert_int_equal(m.sandbox, sandbox);
    assert_string_equal(m.why, "");
    int chan = wire_keep(&r->in, m.channel);
    rig_expect(r, chan, WIRE_A_LIMITS);
    assert_int_equal(a_limits_get(&r->in, &limits, &e), 0);
    return chan;
}

void rig_prepare_ask(struct rig *r, uint32_t id, const char *address, uint16_t port) {
    struct net_addr a;
    assert_true(net_addr_parse(address, strlen(address), &a));
    a_ask_put(&r->out,
              &(struct a_ask){.id = id, .process = 7, .port = port, .address = {a.b, sizeof a.b}});
}

void rig_ask(struct rig *r, int chan, uint32_t id, const char *address, uint16_t port) {
    rig_prepare_ask(r, id, address, port);
    rig_send(r, chan);
}

void rig_name(struct rig *r, int chan, uint32_t id, const char *name, uint16_t type) {
    a_name_put(&r->out, &(struct a_name){.id = id, .process = 7, .type = type, .name = name});
    rig_send(r, chan);
}

uint32_t rig_verdict(struct rig *r, int chan, uint32_t id) {
    struct a_verdict m;
    struct err e;
    rig_expect(r, chan, WIRE_A_VERDICT);
    assert_int_equal(a_verdict_get(&r->in, &m, &e), 0);
    assert_int_equal(m.id, id);
    r->socket = m.socket;
    return m.errnum;
}

int rig_result(struct rig *r, int chan, uint32_t id) {
    struct a_result m;
    struct err e;
    if (r->socket >= 0)
        return wire_keep(&r->in, r->socket);
    rig_expect(r, chan, WIRE_A_RESULT);
    assert_int_equal(a_result_get(&r->in, &m, &e), 0);
    assert_int_equal(m.id, id);
    return m.errnum ? -(int)m.errnum : wire_keep(&r->in, m.socket);
}

int rig_connected(struct rig *r, int chan, uint32_t id) {
    rig_ask(r, chan, id, TARGET, r->port);
    assert_int_equal(rig_verdict(r, chan, id), 0);
    int fd = rig_result(r, chan, id);
    assert_true(fd >= 0);
    return fd;
}

void rig_go_silent(const struct rig *r) {
    struct sock_filter none[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
    const struct sock_fprog p = {1, none};
    assert_int_equal(setsockopt(r->listener, SOL_SOCKET, SO_ATTACH_FILTER, &p, sizeof p), 0);
}
