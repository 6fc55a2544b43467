/* The table of links: a program that connects under a filter of its own, with this process as its
 * init, as the gate and as the usher. */

#include "base/fd.h"
#include "init/internal.h"
#include "init/network/ask.h"
#include "net/judge.h"
#include "sandbox/seccomp_load.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define WAIT_MS 60000 /* what has not come until then does not come */
#define TARGET  "198.51.100.7"

static struct init b;
static struct wire_in in;
static struct wire_out out;
static int gate, server, usher; /* the other ends of its channels */
static uint8_t used;

static bool loopback_up(void) {
    AUTO_FD s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq r = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    return s >= 0 && ioctl(s, SIOCSIFFLAGS, &r) == 0;
}

static int set_up(void **state) {
    int a[2], c[2], d[2];
    struct err e;
    (void)state;
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0 || prctl(PR_SET_DUMPABLE, 1) < 0 ||
        !loopback_up())
        return -1;
    b.plan.used = &used;
    network_init(&b.network);
    if (wire_pair(a, &e) < 0 || wire_pair(c, &e) < 0 || wire_pair(d, &e) < 0)
        return -1;
    gate = a[0];
    b.req = c[1];
    server = c[0];
    if (network_attach(&b, &a[1], &e) < 0) {
        print_error("%s\n", e.text);
        return -1;
    }
    b.network.usher = (struct usher){
        .state = USHER_READY, .channel = d[1], .retry_ms = 0, .page = b.network.usher.page};
    usher = d[0];
    return fd_set_nonblock(d[1], &e) < 0 ? -1
                                         : network_watch(&b.network, d[1], EPOLLIN, EVENT_USHER, 0);
}

/* ---- turns ---- */

static void turns_until(int fd) {
    for (;;) {
        struct pollfd p[] = {{.fd = fd, .events = POLLIN},
                             {.fd = network_fd(&b.network), .events = POLLIN}};
        int patience = network_patience(&b.network);
        assert_true(poll(p, 2, patience < 0 ? WAIT_MS : patience) >= 0);
        network_serve(&b);
        if (p[0].revents)
            return;
    }
}

static void hear(int from, enum wire_type type) {
    struct err e;
    wire_in_done(&in);
    turns_until(from);
    assert_int_equal(wire_recv(from, &in, &e), WIRE_GOT);
    if (in.type != type)
        fail_msg("%s came, not %s", wire_type_name(in.type), wire_type_name(type));
}

static void say(int to) {
    struct err e;
    assert_int_equal(wire_send(to, &out, &e), WIRE_SENT);
    network_serve(&b);
}

/* ---- the program ---- */

static struct sockaddr_in target(uint16_t port) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    inet_pton(AF_INET, TARGET, &a.sin_addr);
    return a;
}

static int stream_socket(int flags) {
    return socket(AF_INET, SOCK_STREAM | flags, 0);
}

static int connected(int s, uint16_t port) {
    struct sockaddr_in a = target(port);
    return connect(s, (const struct sockaddr *)&a, sizeof a) < 0 ? errno : 0;
}

/* 0, or the errno of connect(), or what came after it. */
typedef int program(uint16_t port);

static int plain(uint16_t port) {
    int s = stream_socket(0), errnum = connected(s, port);
    return errnum ? errnum : write(s, "x", 1) == 1 ? 0 : EPIPE;
}

static int impatient(uint16_t port) {
    int errnum = connected(stream_socket(SOCK_NONBLOCK), port);
    return errnum;
}

static bool listens(uint16_t port) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    int s = stream_socket(0), one = 1;
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    return bind(s, (const struct sockaddr *)&a, sizeof a) == 0 && listen(s, 1) == 0;
}

static int listens_after(uint16_t port) {
    int errnum = plain(port);
    return errnum ? errnum : listens(port) ? 0 : EADDRINUSE;
}

static int listens_before(uint16_t port) {
    return listens(port) ? plain(port) : EADDRINUSE;
}

/* Its kernel drops whatever is answered to it. */
static int hears_nothing(uint16_t port) {
    int s = stream_socket(0), most = 255;
    setsockopt(s, IPPROTO_IP, IP_MINTTL, &most, sizeof most);
    return connected(s, port);
}

static const struct sock_filter tells_connects[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_connect, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

static _Noreturn void run(program *fn, uint16_t port, int up) {
    struct wire_out o;
    struct err e;
    int listener;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(gate);
    close(server);
    close(usher);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (seccomp_enter(tells_connects, sizeof tells_connects, &listener, &e) < 0)
        _exit(255);
    k_hand_put(&o, &(struct k_hand){.listener = listener});
    wire_send(up, &o, &e);
    close(listener);
    _exit(fn(port));
}

/* Starts it, and takes its connect to init. */
static pid_t start(program *fn, uint16_t port) {
    int up[2];
    struct err e;
    struct k_hand m;
    struct seccomp_notif n = {0};
    assert_int_equal(wire_pair(up, &e), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        run(fn, port, up[1]);
    close(up[1]);
    hear(up[0], WIRE_K_HAND);
    assert_int_equal(k_hand_get(&in, &m, &e), 0);
    int listener = wire_keep(&in, m.listener); /* stays */
    close(up[0]);
    assert_int_equal(ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &n), 0);
    struct caller c = {.listener = listener, .id = n.id, .thread = (pid_t)n.pid, .nr = n.data.nr};
    memcpy(c.args, n.data.args, sizeof c.args);
    network_connect(&b, 3, &c);
    return pid;
}

/* What became of it. */
static int outcome(pid_t pid) {
    int status;
    AUTO_FD fd = (int)syscall(SYS_pidfd_open, pid, 0);
    turns_until(fd);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* ---- the gate and the usher ---- */

static uint32_t asked(uint16_t port) {
    struct a_ask m;
    struct err e;
    hear(gate, WIRE_A_ASK);
    assert_int_equal(a_ask_get(&in, &m, &e), 0);
    assert_int_equal(m.port, port);
    assert_int_equal(m.process, 3);
    return m.id;
}

static void judge(uint32_t id, int errnum, int socket) {
    a_verdict_put(&out, &(struct a_verdict){.id = id,
                                            .errnum = (uint32_t)errnum,
                                            .rule = errnum ? "network:default-deny" : TARGET,
                                            .op = errnum ? "connect to it" : "",
                                            .detail = errnum ? "ask for it" : "",
                                            .socket = socket});
    say(gate);
}

static void answer(uint32_t id, int errnum, int socket) {
    a_result_put(&out, &(struct a_result){.id = id, .errnum = (uint32_t)errnum, .socket = socket});
    say(gate);
}

/* Something that can be handed on. */
static int outside(void) {
    int fd = stream_socket(SOCK_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

/* The end inside of the next one that is relayed. */
static int relayed(uint32_t id) {
    struct u_relay m;
    struct err e;
    hear(usher, WIRE_U_RELAY);
    assert_int_equal(u_relay_get(&in, &m, &e), 0);
    assert_int_equal(m.id, id);
    return wire_keep(&in, m.inside);
}

static void over(uint32_t id) {
    u_end_put(&out, &(struct u_end){.id = id});
    say(usher);
    hear(gate, WIRE_A_END);
}

static void assert_says_x(int fd) {
    char byte = 0;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, WAIT_MS), 1);
    assert_int_equal(recv(fd, &byte, 1, 0), 1);
    assert_int_equal(byte, 'x');
}

/* ---- tests ---- */

static void a_refused_one_is_told(void **state) {
    (void)state;
    struct i_denied m;
    struct err e;
    pid_t pid = start(plain, 1001);
    judge(asked(1001), EACCES, -1);
    assert_int_equal(outcome(pid), EACCES);
    hear(server, WIRE_I_DENIED);
    assert_int_equal(i_denied_get(&in, &m, &e), 0);
    assert_string_equal(m.op, "connect to it");
}

static void at_once(program *fn, uint16_t port, int wanted) {
    AUTO_FD there = outside();
    pid_t pid = start(fn, port);
    uint32_t id = asked(port);
    judge(id, 0, there);
    AUTO_FD inside = relayed(id);
    assert_int_equal(outcome(pid), wanted);
    if (fn != impatient)
        assert_says_x(inside);
    over(id);
}

static void one_that_the_outside_has_answered_connects_at_once(void **state) {
    (void)state;
    at_once(plain, 1002, 0);
    assert_int_equal(b.network.in[LINK_HELD], 0);
    at_once(impatient, 1003, EINPROGRESS);
    at_once(listens_after, 1004, 0);
}

static void what_listens_inside_is_not_what_was_asked_for(void **state) {
    (void)state;
    at_once(listens_before, 1005, 0);
}

static void held(program *fn, uint16_t port, int wanted) {
    AUTO_FD there = outside();
    pid_t pid = start(fn, port);
    uint32_t id = asked(port);
    judge(id, 0, -1);
    assert_int_equal(b.network.in[LINK_HELD], 1);
    answer(id, 0, there);
    AUTO_FD inside = relayed(id);
    assert_int_equal(outcome(pid), wanted);
    assert_says_x(inside);
    over(id);
}

static void one_whose_answer_takes_time_is_held(void **state) {
    (void)state;
    held(plain, 1006, 0);
    held(listens_after, 1007, 0);
    held(listens_before, 1008, 0);
}

static void the_outsides_errors_are_its_own(void **state) {
    (void)state;
    static const int errnums[] = {ECONNREFUSED, EHOSTUNREACH, ENETUNREACH};
    for (uint16_t i = 0; i < 3; i++) {
        pid_t pid = start(plain, (uint16_t)(1010 + i));
        uint32_t id = asked((uint16_t)(1010 + i));
        judge(id, 0, -1);
        answer(id, errnums[i], -1);
        assert_int_equal(outcome(pid), errnums[i]);
    }
}

/* SECURITY: init waits for nobody. */
static void one_that_hears_no_answer_waits_by_itself(void **state) {
    (void)state;
    AUTO_FD there = outside();
    pid_t pid = start(hears_nothing, 1020);
    uint32_t id = asked(1020);
    judge(id, 0, there);
    assert_int_equal(b.network.in[LINK_OPENING], 1);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    for (unsigned i = 0; i < LINKS; i++)
        b.network.links[i].since_ms = 0; /* long ago */
    links_look_after(&b);
    hear(gate, WIRE_A_END);
    assert_int_equal(b.network.in[LINK_OPENING], 0);
}

/* The kernel would choose between the two. */
static void two_to_one_destination_do_not_meet(void **state) {
    (void)state;
    AUTO_FD there = outside();
    pid_t one = start(plain, 1030), other = start(plain, 1030);
    uint32_t first = asked(1030), second = asked(1030);
    judge(first, 0, -1);
    judge(second, 0, there);
    AUTO_FD inside = relayed(second); /* of whose SYN came first, to the socket that came first */
    assert_says_x(inside);
    answer(first, 0, there);
    AUTO_FD another = relayed(first);
    assert_says_x(another);
    assert_int_equal(outcome(one), 0);
    assert_int_equal(outcome(other), 0);
    over(first);
    over(second);
}

static void what_nobody_asked_for_is_not_heard(void **state) {
    (void)state;
    AUTO_FD there = outside();
    pid_t pid = start(plain, 1040);
    uint32_t id = asked(1040);
    judge(id + 512, 0, there); /* in its place, but of an earlier one */
    judge(id + 1, EACCES, -1);
    answer(id, 0, there); /* before the verdict */
    assert_int_equal(b.network.in[LINK_ASKED], 1);
    judge(id, EACCES, -1);
    assert_int_equal(outcome(pid), EACCES);
}

static void another_gate_is_asked_again(void **state) {
    (void)state;
    int pair[2];
    struct err e;
    pid_t pid = start(plain, 1050);
    uint32_t id = asked(1050);
    assert_int_equal(wire_pair(pair, &e), 0);
    close(gate);
    gate = pair[0];
    network_serve(&b);
    assert_true(b.network.gate < 0);
    assert_int_equal(network_attach(&b, &pair[1], &e), 0);
    assert_int_equal(asked(1050), id);
    judge(id, EACCES, -1);
    assert_int_equal(outcome(pid), EACCES);
}

static void as_many_as_may_be_wait(void **state) {
    (void)state;
    struct caller nobody = {.listener = -1};
    struct end to = {.port = 1060};
    unsigned n = 0;
    assert_true(net_addr_parse(TARGET, strlen(TARGET), &to.at));
    for (; !links_no_room(&b.network) && n < LINKS; n++) {
        struct wish w = {.socket = -1};
        link_ask(&b, 3, &nobody, &to, &w);
    }
    assert_int_equal(n, NET_PENDING);
    links_look_after(&b); /* nobody waits in these */
    assert_null(links_no_room(&b.network));
    assert_int_equal(b.network.in[LINK_ASKED], 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refused_one_is_told),
        cmocka_unit_test(one_that_the_outside_has_answered_connects_at_once),
        cmocka_unit_test(what_listens_inside_is_not_what_was_asked_for),
        cmocka_unit_test(one_whose_answer_takes_time_is_held),
        cmocka_unit_test(the_outsides_errors_are_its_own),
        cmocka_unit_test(one_that_hears_no_answer_waits_by_itself),
        cmocka_unit_test(two_to_one_destination_do_not_meet),
        cmocka_unit_test(what_nobody_asked_for_is_not_heard),
        cmocka_unit_test(another_gate_is_asked_again),
        cmocka_unit_test(as_many_as_may_be_wait),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
