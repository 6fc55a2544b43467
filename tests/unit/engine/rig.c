/* See rig.h. */

#include "rig.h"

#include "rig_heard.h"
#include "rig_words.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define TURNS 6 /* of the loop, until all that follows from one word has happened */

/* ---- time ---- */

static uint64_t rig_now_ns = 1000000000000u;

/* A thread's processor time, and what it rises by with each look; 0: it is the real one. Threads
 * beside the loop look, too. */
static _Atomic uint64_t rig_cpu_ns, rig_cost_ns;

/* For all that is linked into the test: the monotonic clock is ours. */
int clock_gettime(clockid_t id, struct timespec *ts) { /* NOLINT: libc's names are reserved */
    bool is_cpu = id == CLOCK_THREAD_CPUTIME_ID && rig_cost_ns;
    if (id != CLOCK_MONOTONIC && !is_cpu)
        return (int)syscall(SYS_clock_gettime, id, ts);
    uint64_t ns = rig_now_ns;
    if (is_cpu)
        ns = atomic_fetch_add(&rig_cpu_ns, rig_cost_ns) + rig_cost_ns;
    ts->tv_sec = (time_t)(ns / 1000000000u);
    ts->tv_nsec = (long)(ns % 1000000000u);
    return 0;
}

void rig_set_cost(uint64_t ns) {
    rig_cost_ns = ns;
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

static void on_turn(struct timer *t) {
    loop_stop(t->arg);
}

void rig_settle(struct rig *r) {
    struct err e;
    for (int i = 0; i < TURNS; i++) {
        struct timer turn = {.fn = on_turn, .arg = r->loop};
        loop_timer(r->loop, &turn, now_ns());
        assert_int_equal(loop_run(r->loop, &e), 0);
        rig_hear(r);
    }
}

void rig_fire(struct rig *r, struct timer *t) {
    if (!t->place)
        fail_msg("a timer that is not set cannot fire; so far: %s", r->said);
    if (t->at_ns > rig_now_ns)
        rig_now_ns = t->at_ns;
    rig_settle(r);
}

/* ---- a script ---- */

void rig_play_word(struct rig *r, const char *word) {
    char name[400];
    snprintf(name, sizeof name, "%s", word);
    char *value = strchr(name, '=');
    if (value)
        *value++ = '\0';
    if (!value)
        value = name + strlen(name);
    if (!(r->word && r->word(r, name, value)) && !rig_word(r, name, value))
        fail_msg("nobody knows the word %s", word);
    rig_settle(r);
}

void rig_play(struct rig *r, const struct rig_case *c) {
    for (const char *at = c->script; *at;) {
        char word[400];
        size_t len = strcspn(at, " ");
        snprintf(word, sizeof word, "%.*s", (int)len, at);
        rig_play_word(r, word);
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
    rig_set_cost(0);
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

void rig_restart(struct rig *r, const struct config *c) {
    bury(r);
    start(r, c);
    for (unsigned i = 0; i < r->nsandboxes; i++) {
        if (r->sandboxes[i].journal >= 0 && !r->sandboxes[i].is_gone)
            rig_hand_over(r, &r->sandboxes[i]);
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
