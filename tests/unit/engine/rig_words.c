/* See rig_words.h. */

#include "rig_words.h"

#include "rig.h"

#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static int memory_file(const char *text) {
    int fd = memfd_create("rig", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    return fd;
}

void rig_cgroup(struct rig *r, enum cgroup_knob knob, const char *format, ...) {
    char text[200];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    int fd = rig_sandbox(r)->cgroup[knob];
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(pwrite(fd, text, (size_t)len, 0), len);
}

static void send_to(const struct rig *r, int fd, const struct wire_out *o) {
    struct err e;
    if (fd < 0 && r->is_storm)
        return;
    enum wire_sent sent = wire_send(fd, o, &e);
    assert_true(sent == WIRE_SENT || r->is_storm);
}

static void make_process(struct rig_process *p, uint32_t number) {
    int ctl[2], pipes[3][2];
    struct err e;
    assert_int_equal(wire_pair(ctl, &e), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pipe2(pipes[i], O_CLOEXEC), 0);
    *p = (struct rig_process){.number = number,
                              .fds = {ctl[0], pipes[0][1], pipes[1][0], pipes[2][0]},
                              .peer = {ctl[1], pipes[0][0], pipes[1][1], pipes[2][1]}};
}

static void make_cgroup(struct rig_sandbox *s) {
    for (int i = 0; i < KNOBS_; i++)
        s->cgroup[i] = memory_file(i == KNOB_MEMORY_OOM    ? "oom_kill 0\n"
                                   : i == KNOB_PIDS_EVENTS ? "max 0\n"
                                   : i == KNOB_CPU_USAGE   ? "usage_usec 0\n"
                                                           : "0\n");
}

static int workspace(void) {
    char path[] = "/tmp/rig.XXXXXX";
    assert_non_null(mkdtemp(path));
    int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    rmdir(path);
    return fd;
}

static struct wire_fds knobs_of(const struct rig *r, const struct rig_sandbox *s) {
    struct wire_fds f = {.n = r->no_groups ? 0 : KNOBS_};
    memcpy(f.fd, s->cgroup, f.n * sizeof *s->cgroup);
    return f;
}

static uint32_t free_slot(const struct rig *r) {
    for (uint32_t slot = 0;; slot++) {
        bool used = false;
        for (unsigned i = 0; i < r->nsandboxes; i++)
            used |= !r->sandboxes[i].is_gone && r->sandboxes[i].slot == slot;
        if (!used)
            return slot;
    }
}

static void do_made(struct rig *r, const char *value) {
    struct rig_sandbox *s = &r->sandboxes[r->nsandboxes];
    struct wire_out o;
    struct err e;
    int req[2];
    (void)value;
    assert_true(r->nsandboxes < RIG_SANDBOXES);
    *s = (struct rig_sandbox){.id = r->nsandboxes + 1,
                              .profile = r->profile,
                              .slot = free_slot(r),
                              .nprocesses = 1,
                              .journal = -1};
    make_process(&s->processes[0], 0);
    make_cgroup(s);
    assert_int_equal(wire_pair(req, &e), 0);
    s->req = req[1];
    const struct rig_process *p = &s->processes[0];
    const int fds[SANDBOX_FDS_] = {p->fds[0], req[0],      p->fds[1],       p->fds[2],
                                   p->fds[3], workspace(), memory_file(""), memory_file("")};
    memcpy(s->fds, fds, sizeof fds);
    r->at = r->nsandboxes++;
    r->process = 0;
    struct w_made m = {.sandbox = s->id,
                       .profile = s->profile,
                       .slot = s->slot,
                       .version = r->old ? WIRE_OLDEST : WIRE_VERSION,
                       .knobs = knobs_of(r, s)};
    memcpy(m.fds, s->fds, sizeof m.fds);
    w_made_put(&o, &m);
    send_to(r, r->warden, &o);
}

static void put_process(const struct rig_sandbox *s, const struct rig_process *p,
                        struct wire_out *o) {
    struct w_kernel_made m = {.sandbox = s->id, .number = p->number};
    memcpy(m.fds, p->fds, sizeof m.fds);
    w_kernel_made_put(o, &m);
}

static void do_more(struct rig *r, const char *value) {
    struct rig_sandbox *s = rig_sandbox(r);
    struct wire_out o;
    assert_true(s->nprocesses < RIG_PROCESSES);
    r->process = s->nprocesses++;
    make_process(rig_process(r), *value ? (uint32_t)atoi(value) : s->wanted);
    put_process(s, rig_process(r), &o);
    send_to(r, r->warden, &o);
}

static void do_no_more(struct rig *r, const char *value) {
    struct wire_out o;
    (void)value;
    w_kernel_failed_put(
        &o, &(struct w_kernel_failed){rig_sandbox(r)->id, rig_sandbox(r)->wanted, "no place"});
    send_to(r, r->warden, &o);
}

static void tell_profile(const struct rig *r, enum profile_state state) {
    struct wire_out o;
    const char *what = state == PROFILE_READY ? "3.11" : "no interpreter";
    w_profile_put(&o, &(struct w_profile){r->profile, state, what, ""});
    send_to(r, r->warden, &o);
}

static void do_profile(struct rig *r, const char *value) {
    (void)value;
    tell_profile(r, PROFILE_READY);
}

static void do_broken(struct rig *r, const char *value) {
    (void)value;
    tell_profile(r, PROFILE_BROKEN);
}

static void do_failed(struct rig *r, const char *value) {
    struct wire_out o;
    (void)value;
    w_failed_put(&o, &(struct w_failed){r->profile, "no place"});
    send_to(r, r->warden, &o);
}

static void do_up(struct rig *r, const char *value) {
    struct wire_out o;
    (void)value;
    wire_begin(&o, WIRE_K_READY);
    send_to(r, rig_process(r)->peer[0], &o);
}

static void do_unfit(struct rig *r, const char *value) {
    struct wire_out o;
    (void)value;
    k_broken_put(&o, &(struct k_broken){"no memory"});
    send_to(r, rig_process(r)->peer[0], &o);
}

static void do_down(struct rig *r, const char *value) {
    (void)value;
    shutdown(rig_process(r)->peer[0], SHUT_RDWR);
    fd_close(&rig_process(r)->peer[0]);
}

static void tell_exit(struct rig *r, int status) {
    struct wire_out o;
    w_exited_put(&o,
                 &(struct w_exited){rig_sandbox(r)->id, rig_process(r)->number, (uint32_t)status});
    send_to(r, r->warden, &o);
}

static void do_exit(struct rig *r, const char *value) {
    tell_exit(r, atoi(value) << 8);
}

static void do_killed(struct rig *r, const char *value) {
    tell_exit(r, atoi(value));
}

static void do_gone(struct rig *r, const char *value) {
    struct wire_out o;
    (void)value;
    rig_sandbox(r)->is_gone = true;
    w_gone_put(&o, &(struct w_gone){rig_sandbox(r)->id});
    send_to(r, r->warden, &o);
}

static void print(const struct rig *r, int fd, const char *text) {
    ssize_t n = write(fd, text, strlen(text));
    assert_true(n == (ssize_t)strlen(text) || r->is_storm);
}

static void do_out(struct rig *r, const char *value) {
    print(r, rig_process(r)->peer[2], value);
}

static void do_err(struct rig *r, const char *value) {
    print(r, rig_process(r)->peer[3], value);
}

static void replace(char *text, size_t cap, const char *what, const char *with) {
    char before[400];
    const char *at = strstr(text, what);
    if (!at)
        return;
    snprintf(before, sizeof before, "%s", text);
    snprintf(text, cap, "%.*s%s%s", (int)(at - text), before, with,
             before + (at - text) + strlen(what));
}

static void do_say(struct rig *r, const char *value) {
    char text[400];
    struct wire_out o;
    snprintf(text, sizeof text, "%s", value);
    replace(text, sizeof text, "CELL", rig_process(r)->cell);
    replace(text, sizeof text, "ID", rig_process(r)->asked);
    k_say_put(&o, &(struct k_say){.json = {text, strlen(text)}, .file = -1});
    send_to(r, rig_process(r)->peer[0], &o);
}

static void do_reply(struct rig *r, const char *value) {
    struct wire_out o;
    (void)value;
    wire_begin(&o, WIRE_I_REPLY);
    send_to(r, rig_sandbox(r)->req, &o);
}

static void do_error(struct rig *r, const char *value) {
    struct wire_out o;
    (void)value;
    i_error_put(&o, &(struct i_error){ENOENT, "no such file"});
    send_to(r, rig_sandbox(r)->req, &o);
}

static void do_file(struct rig *r, const char *value) {
    struct wire_out o;
    AUTO_FD fd = memory_file(value);
    i_reply_fd_put(&o, &(struct i_reply_fd){fd});
    send_to(r, rig_sandbox(r)->req, &o);
}

/* One file of ten bytes; none without a path. */
static void do_changed(struct rig *r, const char *value) {
    struct wire_out o;
    AUTO_FD fd = memory_file("");
    uint64_t size = 10;
    uint32_t len = (uint32_t)strlen(value);
    if (len) {
        assert_int_equal(write(fd, &size, sizeof size), sizeof size);
        assert_int_equal(write(fd, &len, sizeof len), sizeof len);
        assert_int_equal(write(fd, value, len), len);
    }
    i_reply_list_put(&o, &(struct i_reply_list){.count = len > 0, .records = fd});
    send_to(r, rig_sandbox(r)->req, &o);
}

static void do_denied(struct rig *r, const char *value) {
    struct wire_out o;
    (void)value;
    i_denied_put(&o, &(struct i_denied){rig_process(r)->number, "mount", "of nothing", "seccomp"});
    send_to(r, rig_sandbox(r)->req, &o);
}

static void do_limit(struct rig *r, const char *value) {
    struct wire_out o;
    i_limit_put(&o, &(struct i_limit){(uint32_t)atoi(value)});
    send_to(r, rig_sandbox(r)->req, &o);
}

static void do_nonsense(struct rig *r, const char *value) {
    struct wire_out o;
    (void)value;
    wire_begin(&o, WIRE_I_LIMIT);
    send_to(r, rig_sandbox(r)->req, &o);
}

static void do_oom(struct rig *r, const char *value) {
    (void)value;
    rig_cgroup(r, KNOB_MEMORY_OOM, "oom_kill 1\n");
}

static void do_pids(struct rig *r, const char *value) {
    (void)value;
    rig_cgroup(r, KNOB_PIDS_EVENTS, "max 1\n");
}

static void do_cpu(struct rig *r, const char *value) {
    rig_cgroup(r, KNOB_CPU_USAGE, "usage_usec %s\n", value);
}

static void do_net(struct rig *r, const char *value) {
    struct wire_out o;
    (void)value;
    wire_begin(&o, WIRE_I_NET);
    send_to(r, rig_sandbox(r)->req, &o);
}

static void do_no_route(struct rig *r, const char *value) {
    int fd = rig_sandbox(r)->fds[SANDBOX_SNMP];
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    assert_true(dprintf(fd, "Ip: Forwarding OutNoRoutes\nIp: 2 %s\n", value) > 0);
}

static void do_prints(struct rig *r, const char *value) {
    for (int n = atoi(value); n > 0; n--) {
        do_out(r, "x");
        rig_settle(r);
    }
}

static void do_cost(struct rig *r, const char *value) {
    (void)r;
    rig_set_cost(ms_to_ns((uint64_t)atoi(value)));
}

static void do_box(struct rig *r, const char *value) {
    r->at = (unsigned)atoi(value) - 1;
    r->process = 0;
}

static void do_process(struct rig *r, const char *value) {
    r->process = (unsigned)atoi(value);
}

static void do_settled(struct rig *r, const char *value) {
    struct wire_out o;
    (void)value;
    w_restarts_put(&o, &(struct w_restarts){0});
    send_to(r, r->warden, &o);
}

void rig_hand_over(struct rig *r, const struct rig_sandbox *s) {
    struct wire_out o;
    struct w_kept m = {.sandbox = s->id,
                       .profile = s->profile,
                       .slot = s->slot,
                       .version = WIRE_VERSION,
                       .kernels = s->nprocesses - 1,
                       .journal = s->journal,
                       .knobs = knobs_of(r, s)};
    memcpy(m.fds, s->fds, sizeof m.fds);
    w_kept_put(&o, &m);
    send_to(r, r->warden, &o);
    for (unsigned i = 1; i < s->nprocesses; i++) {
        put_process(s, &s->processes[i], &o);
        send_to(r, r->warden, &o);
    }
}

static const struct {
    const char *name;
    void (*fn)(struct rig *r, const char *value);
} words[] = {
    {"profile", do_profile}, {"broken", do_broken},     {"made", do_made},
    {"failed", do_failed},   {"more", do_more},         {"no-more", do_no_more},
    {"up", do_up},           {"unfit", do_unfit},       {"down", do_down},
    {"exit", do_exit},       {"killed", do_killed},     {"gone", do_gone},
    {"out", do_out},         {"err", do_err},           {"say", do_say},
    {"reply", do_reply},     {"error", do_error},       {"file", do_file},
    {"changed", do_changed}, {"denied", do_denied},     {"limit", do_limit},
    {"oom", do_oom},         {"pids", do_pids},         {"cpu", do_cpu},
    {"box", do_box},         {"process", do_process},   {"settled", do_settled},
    {"net", do_net},         {"no-route", do_no_route}, {"prints", do_prints},
    {"cost", do_cost},       {"nonsense", do_nonsense},
};

bool rig_word(struct rig *r, const char *name, const char *value) {
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(words[i].name, name) == 0) {
            words[i].fn(r, value);
            return true;
        }
    }
    return false;
}
