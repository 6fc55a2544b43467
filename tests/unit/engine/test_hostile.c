/* Peers that are not honest: a kernel that says anything, an init that answers what nobody asked, a
 * zygote whose processes nobody wants. Whatever they do, the server goes on: the sandbox ends, or
 * the message is left out.
 *
 * The scripts are what can be named; the storms are the rest: messages of all peers in any order,
 * among what clients do, over and over. The state tables are checked on the way (core/state.h): a
 * change that they do not allow would end this program. */

#include "live_rig.h"

#include "engine/core/bounds.h"
#include "engine/kernel/cell.h"
#include "engine/kernel/kernel.h"
#include "engine/live/command.h"
#include "engine/live/lives.h"
#include "engine/oneshot/run.h"
#include "engine/process/live_state.h"

#include <jansson.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* ---- scripts ---- */

static const struct rig_case cases[] = {
    {"a second word that it is ready is the end of its process", LIVE "up killed=9",
     LIVE_BEGUN " KILL died W_KERNEL"},
    {"an answer that nobody asked for ends the sandbox", LIVE "reply gone",
     LIVE_BEGUN " W_END forgotten ended:lost W_END"},
    {"and so does an error", LIVE "error gone", LIVE_BEGUN " W_END forgotten ended:lost W_END"},
    {"a limit that does not exist ends it", LIVE "cell=a limit=1000 gone",
     LIVE_BEGUN " a:start execute W_END a:fail:sandbox_gone forgotten ended:lost W_END"},
    {"half a message ends it", LIVE "nonsense gone",
     LIVE_BEGUN " W_END forgotten ended:lost W_END"},
    {"nobody listens to it after that",
     LIVE "cell=a reply out=x " SAY_DONE "limit=1 reply error gone",
     LIVE_BEGUN " a:start execute W_END a:stdout a:fail:sandbox_gone forgotten ended:lost W_END"},
    {"a process that nobody asked for ends it", LIVE "more=7 gone",
     LIVE_BEGUN " W_END forgotten ended:lost W_END"},
    {"a process that is there already ends it", LIVE "more=0 gone",
     LIVE_BEGUN " W_END forgotten ended:lost W_END"},
    {"one that was asked for and comes twice ends it", LIVE "kernel more more gone",
     LIVE_BEGUN " W_KERNEL W_END kernel:fail:sandbox_gone forgotten ended:lost W_END"},
    {"no process, for nobody, is no news", LIVE "no-more find", LIVE_BEGUN " found"},
    {"an end of a process that is not there is no news",
     LIVE "kernel more up process=1 exit=0 "
          "exit=0 find",
     LIVE_BEGUN " W_KERNEL back kernel:ready W_SHUT K_LIVE died W_KERNEL found"},
    {"what a cell says after its end is left out",
     LIVE "cell=a " SAY_DONE "changed " SAY_DONE SAY_DONE "cell=b",
     LIVE_BEGUN " a:start execute I_CHANGES a:done:ok b:start execute"},
};

static void scripts(void **state) {
    (void)state;
    live_rig_play(cases, sizeof cases / sizeof *cases);
}

/* ---- storms ---- */

#define STORMS 60
#define STEPS  250

static struct rig rig;
static struct run *run;
static unsigned wanted; /* sandboxes that the engine asked for */

static uint32_t dice;

/* xorshift32: the same storms in every run. */
static unsigned roll(unsigned n) {
    dice ^= dice << 13;
    dice ^= dice >> 17;
    dice ^= dice << 5;
    return dice % n;
}

static void on_start(void *arg, struct run *r) {
    (void)arg, (void)r;
}

static void on_output(void *arg, int stream, const void *data, size_t len) {
    (void)arg, (void)stream, (void)data, (void)len;
}

static void on_stdin(void *arg, size_t taken) {
    (void)arg, (void)taken;
}

static bool on_file(void *arg, const char *path, uint64_t size, int *fd) {
    (void)arg, (void)path, (void)size, (void)fd;
    return false;
}

static void on_run_done(void *arg, struct run *r, const struct err *why) {
    (void)arg, (void)r, (void)why;
    run = NULL;
}

static void on_live_ready(void *arg, struct live *l, const struct err *why) {
    (void)arg, (void)l, (void)why;
}

static void on_kernel_ready(void *arg, struct kernel *k, const struct err *why) {
    (void)arg, (void)k, (void)why;
}

static void on_event(void *arg, const char *type, const struct buf *json) {
    (void)arg, (void)type, (void)json;
}

static void on_cell_done(void *arg, struct cell *c, const struct err *why) {
    AUTO_BUF json = BUF_INIT;
    (void)arg;
    if (!why)
        cell_end_json(c, &json);
}

static void on_command_done(void *arg, struct command *c) {
    AUTO_BUF json = BUF_INIT;
    (void)arg;
    command_json(c, &json);
}

static void ask_run(void) {
    static const struct run_callbacks cb = {.on_start = on_start,
                                            .on_output = on_output,
                                            .on_stdin = on_stdin,
                                            .on_file = on_file,
                                            .on_done = on_run_done};
    struct run_request q = {.tenant = xstrdup("a"),
                            .profile = xstrdup("base"),
                            .code = (uint8_t *)xstrdup("pass"),
                            .code_len = 4,
                            .code_fd = -1,
                            .flags = roll(2) ? RUN_FILES | RUN_STDIN : 0};
    struct err e;
    if (run_new(rig.engine, &q, &cb, &run, &e) < 0)
        run_request_done(&q);
}

static void ask_live(void) {
    struct live_request q = {
        .tenant = xstrdup("a"), .profile = xstrdup("base"), .metadata = xstrdup("{}")};
    struct live *made;
    struct err e;
    if (live_new(rig.engine, &q, on_live_ready, NULL, &made, &e) < 0)
        live_request_done(&q);
}

static void ask_cell(struct kernel *k) {
    struct cell_request q = {.code = json_string("pass"), .allow_stdin = roll(2)};
    const struct cell_callbacks cb = {.on_event = on_event, .on_done = on_cell_done};
    struct cell *made;
    struct err e;
    if (cell_new(k, &q, &cb, &made, &e) < 0)
        cell_request_done(&q);
}

static void ask_command(struct live *l) {
    struct command_request q = {.argv = xcalloc(2, sizeof *q.argv),
                                .shown = xstrdup("true"),
                                .cwd = xstrdup(""),
                                .rows = roll(3) ? 0 : 24,
                                .timeout_ms = 60000};
    const struct command_callbacks cb = {.on_event = on_event, .on_done = on_command_done};
    struct command *made;
    struct err e;
    q.argv[0] = xstrdup("true");
    if (command_new(l, &q, &cb, &made, &e) < 0)
        command_request_done(&q);
}

static struct kernel *some_kernel(struct live *l) {
    struct kernel *k = kernel_next(l, NULL);
    for (unsigned n = roll(3); n > 0 && k && kernel_next(l, k); n--)
        k = kernel_next(l, k);
    return k;
}

static void pass_time(struct live *l, struct kernel *k) {
    struct timer *timers[] = {
        &k->retry, &k->process.deadline, k->running ? &k->running->timer : NULL,
        k->running ? &k->running->cpu_limit.timer : NULL, l->commands ? &l->commands->timer : NULL};
    struct timer *t = timers[roll(sizeof timers / sizeof *timers)];
    if (t && t->place)
        rig_fire(&rig, t);
}

static void do_to_kernel(struct live *l, struct kernel *k) {
    json_auto_t *text = json_string("text");
    struct err e;
    switch (roll(8)) {
    case 0:
    case 1:
        ask_cell(k);
        return;
    case 2:
        kernel_interrupt(k);
        return;
    case 3:
        kernel_restart(k, on_kernel_ready, NULL);
        return;
    case 4:
        kernel_delete(k, &e);
        return;
    case 5:
        kernel_stdin(k, text, &e);
        return;
    default:
        pass_time(l, k);
    }
}

static void do_to_live(struct live *l) {
    struct err e;
    switch (roll(8)) {
    case 0:
        kernel_new(l, &(struct kernel_request){0}, on_kernel_ready, NULL, &e);
        return;
    case 1:
        ask_command(l);
        return;
    case 2:
        live_pause(l, !live_is_paused(l), &e);
        return;
    case 3:
        if (l->commands && command_runs(l->commands))
            command_signal(l->commands, roll(2) ? SIGTERM : SIGKILL, &e);
        return;
    default:
        if (some_kernel(l))
            do_to_kernel(l, some_kernel(l));
    }
}

static void be_client(void) {
    struct live *l = live_next(rig.engine, "a", NULL);
    if (!run && roll(4) == 0)
        ask_run();
    else if (run && roll(8) == 0)
        run_signal(run, roll(2) ? SIGINT : SIGKILL);
    else if (!l && roll(2))
        ask_live();
    else if (l)
        do_to_live(l);
}

static void be_peer(void) {
    static const char *const words[] = {
        "up",
        "unfit",
        "down",
        "exit=0",
        "killed=9",
        "gone",
        "out=text",
        "err=text",
        "reply",
        "reply",
        "reply",
        "error",
        "file=text",
        "changed",
        "changed=a.txt",
        "denied",
        "limit=1",
        "limit=3",
        "limit=77",
        "nonsense",
        "oom",
        "no-more",
        "say={\"ev\":\"done\",\"id\":\"CELL\",\"status\":\"ok\"}",
        "say={\"ev\":\"done\",\"id\":\"CELL\",\"status\":\"ok\",\"leaves\":true}",
        "say={\"ev\":\"reply\",\"id\":\"ID\",\"ok\":true}",
        "say={\"ev\":\"reply\",\"id\":\"ID\",\"ok\":false}",
        "say={\"ev\":\"error\",\"id\":\"CELL\",\"name\":\"E\",\"value\":\"v\"}",
        "say={\"ev\":\"input\",\"id\":\"CELL\",\"prompt\":\"?\"}",
        "say={\"ev\":\"clear\",\"id\":\"CELL\",\"wait\":true}",
        "say={\"ev\":\"result\",\"id\":\"CELL\",\"data\":{\"text/plain\":\"1\"},\"go\":1}",
        "say={}",
        "say=[",
    };
    struct rig_sandbox *s;
    if (rig.nsandboxes == 0)
        return;
    rig.at = rig.nsandboxes - 1 - (roll(4) ? 0 : roll(rig.nsandboxes));
    s = rig_sandbox(&rig);
    rig.process = roll(s->nprocesses);
    if (s->wanted && s->nprocesses < RIG_PROCESSES && roll(3) == 0) {
        rig_play_word(&rig, roll(16) ? "more" : "more=9999");
        if (roll(4))
            rig_play_word(&rig, "up");
        return;
    }
    rig_play_word(&rig, words[roll(sizeof words / sizeof *words)]);
}

/* Only what it was asked for: the warden is ours. */
static void be_warden(void) {
    for (const char *at = rig.said; (at = strstr(at, "W_MAKE")); at++)
        wanted++;
    rig.said[0] = '\0';
    if (!wanted || rig.nsandboxes == RIG_SANDBOXES)
        return;
    wanted--;
    rig.profile = roll(3) ? 1 : 0;
    rig_play_word(&rig, "made");
    if (roll(8))
        rig_play_word(&rig, "up");
}

static void storm(uint32_t seed) {
    const struct config c = rig_config();
    dice = seed;
    wanted = 0;
    run = NULL;
    rig_init(&rig, &c);
    rig.is_storm = true;
    lives_init(rig.engine, -1);
    for (rig.profile = 0; rig.profile < 2; rig.profile++)
        rig_play_word(&rig, "profile");
    for (unsigned i = 0; i < STEPS; i++) {
        be_warden();
        if (roll(3))
            be_peer();
        else
            be_client();
        rig_settle(&rig);
    }
    rig_done(&rig);
}

static void storms_end_no_server(void **state) {
    (void)state;
    for (uint32_t seed = 1; seed <= STORMS; seed++)
        storm(seed * 2654435761u);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scripts),
        cmocka_unit_test(storms_end_no_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
