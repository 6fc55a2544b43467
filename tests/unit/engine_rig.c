/* See engine_rig.h. */

#include "engine_rig.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define TURNS 6 /* of the loop, until all that follows from one word has happened */

/* ---- time ---- */

static uint64_t rig_now_ns = 1000000000000u;

/* For all that is linked into the test: the monotonic clock is ours. */
int clock_gettime(clockid_t id, struct timespec *ts) { /* NOLINT: libc's names are reserved */
    if (id != CLOCK_MONOTONIC)
        return (int)syscall(SYS_clock_gettime, id, ts);
    ts->tv_sec = (time_t)(rig_now_ns / 1000000000u);
    ts->tv_nsec = (long)(rig_now_ns % 1000000000u);
    return 0;
}

void rig_say(struct rig *r, const char *format, ...) {
    size_t len = strlen(r->said);
    va_list args;
    if (len)
        len += (size_t)snprintf(r->said + len, sizeof r->said - len, " ");
    va_start(args, format);
    vsnprintf(r->said + len, sizeof r->said - len, format, args);
    va_end(args);
}

struct rig_sandbox *rig_sandbox(struct rig *r) {
    assert_true(r->at < r->nsandboxes);
    return &r->sandboxes[r->at];
}

struct rig_process *rig_process(struct rig *r) {
    return &rig_sandbox(r)->processes[r->process];
}

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

/* ---- what the engine sent ---- */

static bool get(int fd, struct wire_in *in) {
    struct err e;
    if (fd < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
        return false;
    return wire_recv(fd, in, &e) == WIRE_GOT;
}

static struct rig_sandbox *find(struct rig *r, uint64_t id) {
    for (unsigned i = 0; i < r->nsandboxes; i++) {
        if (r->sandboxes[i].id == id)
            return &r->sandboxes[i];
    }
    return NULL;
}

static void from_warden(struct rig *r) {
    for (;;) {
        AUTO_WIRE_IN in = {0};
        if (!get(r->warden, &in))
            return;
        rig_say(r, "%s", wire_type_name(in.type));
        struct w_kernel kernel;
        struct w_keep keep;
        struct w_end end;
        struct err e;
        if (w_kernel_get(&in, &kernel, &e) == 0)
            find(r, kernel.sandbox)->wanted = kernel.number;
        if (w_keep_get(&in, &keep, &e) == 0)
            find(r, keep.sandbox)->journal = wire_keep(&in, keep.journal);
        if (w_end_get(&in, &end, &e) == 0 && end.sandbox != (uint64_t)r->nsandboxes)
            rig_say(r, "(%u)", (unsigned)end.sandbox);
    }
}

/* A request to a live kernel is told by its operation. */
static void from_kernel(struct rig *r, struct rig_process *p) {
    for (;;) {
        AUTO_WIRE_IN in = {0};
        struct k_do m;
        struct err e;
        if (!get(p->peer[0], &in))
            return;
        if (k_do_get(&in, &m, &e) < 0) {
            rig_say(r, "%s", wire_type_name(in.type));
            continue;
        }
        json_auto_t *o = json_loadb(m.json.data, m.json.len, 0, NULL);
        const char *id = json_string_value(json_object_get(o, "id"));
        const char *op = json_string_value(json_object_get(o, "op"));
        assert_non_null(op);
        rig_say(r, "%s", op);
        if (id)
            snprintf(p->asked, sizeof p->asked, "%s", id);
        if (id && strcmp(op, "execute") == 0)
            snprintf(p->cell, sizeof p->cell, "%s", id);
    }
}

static void from_init(struct rig *r, const struct rig_sandbox *s) {
    for (;;) {
        AUTO_WIRE_IN in = {0};
        if (!get(s->req, &in))
            return;
        if (in.type == WIRE_I_LEFT)
            continue;
        struct i_signal sig;
        struct i_echo echo;
        struct err e;
        if (i_signal_get(&in, &sig, &e) == 0)
            rig_say(r, "%s", sigabbrev_np((int)sig.signal));
        else
            rig_say(r, "%s", wire_type_name(in.type));
        if (i_echo_get(&in, &echo, &e) == 0) { /* answered by itself: it is only the beginning */
            struct wire_out o;
            i_reply_echo_put(&o, &(struct i_reply_echo){.value = echo.value});
            wire_send(s->req, &o, &e);
        }
    }
}

static void hear(struct rig *r) {
    from_warden(r);
    for (unsigned i = 0; i < r->nsandboxes; i++) {
        struct rig_sandbox *s = &r->sandboxes[i];
        for (unsigned p = 0; p < s->nprocesses; p++)
            from_kernel(r, &s->processes[p]);
        from_init(r, s);
    }
}

static void on_turn(struct timer *t) {
    loop_stop(t->arg);
}

void rig_settle(struct rig *r) {
    struct err e;
    for (int i = 0; i < TURNS; i++) {
        struct timer turn = {.fn = on_turn, .arg = r->loop};
        loop_timer(r->loop, &turn, now_ns());
        assert_int_equal(loop_run(r->loop, &e), 0);
        hear(r);
    }
}

void rig_fire(struct rig *r, struct timer *t) {
    if (!t->place)
        fail_msg("a timer that is not set cannot fire; so far: %s", r->said);
    if (t->at_ns > rig_now_ns)
        rig_now_ns = t->at_ns;
    rig_settle(r);
}

/* ---- what happens to it ---- */

static void send_to(int fd, const struct wire_out *o) {
    struct err e;
    assert_int_equal(wire_send(fd, o, &e), WIRE_SENT);
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
                       .version = WIRE_VERSION,
                       .knobs = knobs_of(r, s)};
    memcpy(m.fds, s->fds, sizeof m.fds);
    w_made_put(&o, &m);
    send_to(r->warden, &o);
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
    (void)value;
    assert_true(s->nprocesses < RIG_PROCESSES);
    r->process = s->nprocesses++;
    make_process(rig_process(r), s->wanted);
    put_process(s, rig_process(r), &o);
    send_to(r->warden, &o);
}

static void do_no_more(struct rig *r, const char *value) {
    struct wire_out o;
    (void)value;
    w_kernel_failed_put(
        &o, &(struct w_kernel_failed){rig_sandbox(r)->id, rig_sandbox(r)->wanted, "no place"});
    send_to(r->warden, &o);
}

static void tell_profile(const struct rig *r, enum profile_state state) {
    struct wire_out o;
    const char *what = state == PROFILE_READY ? "3.11" : "no interpreter";
    w_profile_put(&o, &(struct w_profile){r->profile, state, what, ""});
    send_to(r->warden, &o);
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
    send_to(r->warden, &o);
}

static void do_up(struct rig *r, const char *value) {
    struct wire_out o;
    (void)value;
    wire_begin(&o, WIRE_K_READY);
    send_to(rig_process(r)->peer[0], &o);
}

static void do_unfit(struct rig *r, const char *value) {
    struct wire_out o;
    (void)value;
    k_broken_put(&o, &(struct k_broken){"no memory"});
    send_to(rig_process(r)->peer[0], &o);
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
    send_to(r->warden, &o);
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
    send_to(r->warden, &o);
}

static void do_out(struct rig *r, const char *value) {
    assert_int_equal(write(rig_process(r)->peer[2], value, strlen(value)), strlen(value));
}

static void do_err(struct rig *r, const char *value) {
    assert_int_equal(write(rig_process(r)->peer[3], value, strlen(value)), strlen(value));
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
    send_to(rig_process(r)->peer[0], &o);
}

static void do_reply(struct rig *r, const char *value) {
    struct wire_out o;
    (void)value;
    wire_begin(&o, WIRE_I_REPLY);
    send_to(rig_sandbox(r)->req, &o);
}

static void do_error(struct rig *r, const char *value) {
    struct wire_out o;
    (void)value;
    i_error_put(&o, &(struct i_error){ENOENT, "no such file"});
    send_to(rig_sandbox(r)->req, &o);
}

static void do_file(struct rig *r, const char *value) {
    struct wire_out o;
    AUTO_FD fd = memory_file(value);
    i_reply_fd_put(&o, &(struct i_reply_fd){fd});
    send_to(rig_sandbox(r)->req, &o);
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
    send_to(rig_sandbox(r)->req, &o);
}

static void do_denied(struct rig *r, const char *value) {
    struct wire_out o;
    (void)value;
    i_denied_put(&o, &(struct i_denied){rig_process(r)->number, "mount", "of nothing", "seccomp"});
    send_to(rig_sandbox(r)->req, &o);
}

static void do_limit(struct rig *r, const char *value) {
    struct wire_out o;
    i_limit_put(&o, &(struct i_limit){(uint32_t)atoi(value)});
    send_to(rig_sandbox(r)->req, &o);
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
    send_to(r->warden, &o);
}

static const struct {
    const char *name;
    void (*fn)(struct rig *r, const char *value);
} words[] = {
    {"profile", do_profile}, {"broken", do_broken},   {"made", do_made},
    {"failed", do_failed},   {"more", do_more},       {"no-more", do_no_more},
    {"up", do_up},           {"unfit", do_unfit},     {"down", do_down},
    {"exit", do_exit},       {"killed", do_killed},   {"gone", do_gone},
    {"out", do_out},         {"err", do_err},         {"say", do_say},
    {"reply", do_reply},     {"error", do_error},     {"file", do_file},
    {"changed", do_changed}, {"denied", do_denied},   {"limit", do_limit},
    {"oom", do_oom},         {"pids", do_pids},       {"cpu", do_cpu},
    {"box", do_box},         {"process", do_process}, {"settled", do_settled},
};

static void play_word(struct rig *r, const char *word) {
    char name[400];
    snprintf(name, sizeof name, "%s", word);
    char *value = strchr(name, '=');
    if (value)
        *value++ = '\0';
    if (r->word && r->word(r, name, value ? value : ""))
        return;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(words[i].name, name) == 0) {
            words[i].fn(r, value ? value : "");
            return;
        }
    }
    fail_msg("nobody knows the word %s", word);
}

void rig_play(struct rig *r, const struct rig_case *c) {
    for (const char *at = c->script; *at;) {
        char word[400];
        size_t len = strcspn(at, " ");
        snprintf(word, sizeof word, "%.*s", (int)len, at);
        play_word(r, word);
        rig_settle(r);
        at += len + strspn(at + len, " ");
    }
    if (strcmp(r->said, c->expected) != 0)
        fail_msg("%s:\n  got       %s\n  expected  %s", c->name, r->said, c->expected);
}

/* ---- its beginning and end ---- */

struct config rig_config(void) {
    static char *const none[] = {(char *)"base", (char *)"base+live", (char *)"/usr/bin/python3"};
    const struct limits some = {.timeout_ms = 60000,
                                .memory_mb = 256,
                                .cpu_seconds = 5,
                                .cpus_percent = 100,
                                .pids = 64,
                                .disk_mb = 64,
                                .open_files = 256,
                                .output_bytes = 100};
    return (struct config){.max_sandboxes = RIG_SANDBOXES,
                           .queue_max = 4,
                           .queue_ms = 60000,
                           .defaults = some,
                           .maxima = some,
                           .live = some,
                           .live_ttl_s = 3600,
                           .live_idle_s = 600,
                           .live_grace_ms = 60000,
                           .nprofiles = 2,
                           .profiles = {{.name = none[0], .python = none[2]},
                                        {.name = none[1], .python = none[2], .live = 1}}};
}

static void start(struct rig *r, const struct config *c) {
    const struct config_part all = {.reader = CONFIG_SERVER};
    AUTO_FD config = -1;
    int pair[2];
    struct err e;
    assert_int_equal(config_pack(c, &all, &config, &e), 0);
    assert_int_equal(wire_pair(pair, &e), 0);
    assert_int_equal(loop_new(&r->loop, &e), 0);
    r->warden = pair[1];
    r->engine = calloc(1, sizeof *r->engine);
    assert_non_null(r->engine);
    assert_int_equal(engine_init(r->engine, r->loop, config, &pair[0], &e), 0);
}

void rig_init(struct rig *r, const struct config *c) {
    *r = (struct rig){0};
    log_init("rig", LOG_ERROR);
    signal(SIGPIPE, SIG_IGN);
    start(r, c);
}

/* A server that dies leaves all as it is; nothing of it runs any more. It stays reachable, so that
 * nobody takes it for a leak. */
static struct rig dead[256];
static unsigned ndead;

static void bury(struct rig *r) {
    assert_true(ndead < sizeof dead / sizeof *dead);
    dead[ndead++] = *r;
}

static void hand_over(struct rig *r, const struct rig_sandbox *s) {
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
    send_to(r->warden, &o);
    for (unsigned i = 1; i < s->nprocesses; i++) {
        put_process(s, &s->processes[i], &o);
        send_to(r->warden, &o);
    }
}

void rig_restart(struct rig *r, const struct config *c) {
    bury(r);
    start(r, c);
    for (unsigned i = 0; i < r->nsandboxes; i++) {
        if (r->sandboxes[i].journal >= 0 && !r->sandboxes[i].is_gone)
            hand_over(r, &r->sandboxes[i]);
    }
}

/* Its sandboxes die, and whoever has one hears of it. */
static void end_engine(struct rig *r) {
    struct engine *g = r->engine;
    while (g->sandboxes)
        sandbox_gone(g->sandboxes);
    rig_settle(r);
    for (unsigned i = 0; i < g->config.max_sandboxes; i++)
        cgroup_fds_done(&g->cgroups[i]);
    chan_done(&g->warden);
    loop_free(r->loop);
    r->loop = NULL;
}

void rig_done(struct rig *r) {
    end_engine(r);
    for (unsigned i = 0; i < r->nsandboxes; i++) {
        struct rig_sandbox *s = &r->sandboxes[i];
        fd_close_all(s->fds, SANDBOX_FDS_);
        fd_close(&s->req);
        fd_close(&s->journal);
        fd_close_all(s->cgroup, KNOBS_);
        for (unsigned p = 0; p < s->nprocesses; p++) {
            fd_close_all(s->processes[p].peer, 4);
            if (p > 0)
                fd_close_all(s->processes[p].fds, 4);
        }
    }
    fd_close(&r->warden);
    bury(r);
    *r = (struct rig){0};
}
