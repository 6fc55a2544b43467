/* A program, from the request to its result: the hot path, every limit, every way to be lost. */

#include "engine/oneshot/heard.h"
#include "engine/oneshot/internal.h"
#include "engine/oneshot/result.h"
#include "rig.h"
#include "rig_beside.h"

#include "base/buf.h"
#include "base/fd.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* run=FLAGS asks for a program: s with a stdin, f for its files, d with another disk, v with what
 * it shows, which is told as result or display. done=N: it says that it ended, and how (done=int:
 * interrupted). timer and look let its clock and that of its processor time be due, rested lets it
 * be read again; answer+timer: both at once. What is said: start, out:TEXT, taken:N of its stdin,
 * file:PATH, done:STATUS with the limit that it met, fail:KIND. */
#define READY  "profile run made up "
#define BEGUN  "W_MAKE start K_RUN"
#define FILES  "profile run=f made up touch "
#define ENDING "I_KILL"
/* What prints=16 says. */
#define FREE_READS                                                                                 \
    " out:x out:x out:x out:x out:x out:x out:x out:x out:x out:x out:x out:x out:x out:x out:x"   \
    " out:x"

static const struct rig_case cases[] = {
    {"the hot path asks nobody else", READY "done=0", BEGUN " done:ok W_END"},
    {"one that is ready is taken at once", "size=1 profile made up run done=0",
     "W_MAKE start K_RUN done:ok W_END W_MAKE"},
    {"what it prints is told as it comes", READY "out=a err=b out=c done=0",
     BEGUN " out:a err:b out:c done:ok W_END"},
    {"what it printed last comes before its end", READY "last=bye", BEGUN " out:bye done:ok W_END"},
    {"an exit code is an error", READY "done=3", BEGUN " done:error W_END"},
    {"an interrupt that it heard", READY "int reply done=int", BEGUN " INT done:interrupted W_END"},
    {"it may leave without a word", READY "exit=0", BEGUN " done:killed W_END"},
    {"it may die", READY "killed=11", BEGUN " done:killed W_END"},
    {"what it said before it died counts", READY "done=0 killed=9", BEGUN " done:ok W_END"},
    {"one that closed its socket runs on until it ends", READY "down out=a exit=0",
     BEGUN " out:a done:killed W_END"},
    {"a frame that no kernel sends is its end", READY "up reply",
     BEGUN " " ENDING " done:killed W_END"},
    {"one that could not start is no result", READY "unfit", BEGUN " fail:- W_END"},

    {"its time is up", READY "timer reply", BEGUN " " ENDING " done:timeout/time W_END"},
    {"init does not answer: what is known is told", READY "timer timer",
     BEGUN " " ENDING " done:timeout/time W_END"},
    {"an answer that comes with the deadline for it is one end, not two",
     READY "timer answer+timer", BEGUN " " ENDING " done:timeout/time W_END"},
    {"it was killed for its memory", READY "oom killed=9",
     BEGUN " done:memory_exceeded/memory W_END"},
    {"another process of it was", READY "oom done=0", BEGUN " done:ok/memory W_END"},
    {"it could not start more processes", READY "pids done=0", BEGUN " done:ok/pids W_END"},
    {"memory is told before processes", READY "pids oom done=0", BEGUN " done:ok/memory W_END"},
    {"its processor time is up", READY "cpu=5000000 look reply",
     BEGUN " " ENDING " done:killed/cpu W_END"},
    {"one that slept is looked at again", READY "cpu=1000000 look cpu=5000000 look reply",
     BEGUN " " ENDING " done:killed/cpu W_END"},
    {"more output than it may have is dropped", READY "flood done=0",
     BEGUN " out:#100 done:ok/output W_END"},
    {"a refusal is in the result", READY "denied denied done=0", BEGUN " done:ok-denied W_END"},

    {"what found no way out is told of one that had a socket", READY "net no-route=1 done=0",
     BEGUN " done:ok-denied W_END"},
    {"without one nobody looks", READY "no-route=1 done=0", BEGUN " done:ok W_END"},
    {"a socket may be there before its program", "size=1 profile made up net run no-route=1 done=0",
     "W_MAKE start K_RUN done:ok-denied W_END W_MAKE"},

    {"one that prints without end is read after a rest",
     READY "cost=300 prints=16 out=a out=b rested out=c rested done=0",
     BEGUN FREE_READS " out:a rested out:b rested out:c done:ok W_END"},
    {"what it printed last is not waited for", READY "cost=300 prints=16 out=a last=b",
     BEGUN FREE_READS " out:a out:b done:ok W_END"},
    {"to read what it prints is processor time that it has",
     READY "cost=5000 prints=16 out=a look reply",
     BEGUN FREE_READS " out:a " ENDING " done:killed/cpu W_END"},

    {"it is lost with its sandbox", READY "gone", BEGUN " fail:sandbox_lost W_END"},
    {"the machine has no sandbox in time", "profile run timer", "W_MAKE fail:queue_timeout"},
    {"the profile breaks while it waits", "profile run broken", "W_MAKE fail:profile_broken"},
    {"who left the queue gets nothing", "profile run cancel made up", "W_MAKE W_END"},
    {"who left while it ran hears nothing", READY "cancel", BEGUN " W_END"},
    {"it is killed on request", READY "kill reply", BEGUN " " ENDING " done:killed W_END"},
    {"one that waits is called off", "profile run kill", "W_MAKE fail:interrupted"},

    {"a file that it made is fetched", FILES "done=0 reply changed=a.txt file=0123456789",
     BEGUN " I_KILL I_CHANGES I_OPEN file:a.txt done:ok W_END"},
    {"nothing changed after all", FILES "done=0 reply changed",
     BEGUN " I_KILL I_CHANGES done:ok W_END"},
    {"a file that cannot be opened is left out", FILES "done=0 reply changed=a error",
     BEGUN " I_KILL I_CHANGES I_OPEN done:ok W_END"},
    {"init does not tell the files", FILES "done=0 timer",
     BEGUN " I_KILL I_CHANGES fail:sandbox_lost W_END"},
    {"its own program is no file of it", FILES "done=0 reply changed=__main__.py",
     BEGUN " I_KILL I_CHANGES done:ok W_END"},

    {"its stdin is written as it reads", "profile run=s made up stdin=abc stdin= done=0",
     BEGUN " taken:3 done:ok W_END"},
    {"what came before it began is not lost", "profile run=s stdin=abc made up done=0",
     "W_MAKE taken:3 start K_RUN done:ok W_END"},
    {"nobody reads its stdin any more", "profile run=s made up deaf stdin=abc done=0",
     BEGUN " taken:0 done:ok W_END"},

    {"another disk is asked for first", "profile run=d made up reply done=0",
     "W_MAKE I_LIMITS start K_RUN done:ok W_END"},
    {"another memory is told, and nobody waits", "profile run=m made up reply done=0",
     "W_MAKE start K_RUN I_LIMITS done:ok W_END"},
    {"the answer is late", "profile run=m made up done=0 reply",
     "W_MAKE start K_RUN I_LIMITS done:ok W_END"},
    {"the answer never comes", "profile run=m made up done=0 timer",
     "W_MAKE start K_RUN I_LIMITS fail:sandbox_lost W_END"},
    {"an older kernel does not know how to wait", "old profile run=m made up reply done=0",
     "W_MAKE I_LIMITS start K_RUN done:ok W_END"},
    {"and its program does not begin", "old profile run=m made up timer",
     "W_MAKE I_LIMITS fail:sandbox_lost W_END"},
    {"what the kernel holds is nothing to init", "profile run=o made up done=0",
     "W_MAKE start K_RUN done:ok W_END"},
    {"it cannot be had", "profile run=d made up error", "W_MAKE I_LIMITS fail:- W_END"},
    {"init does not answer before it began", "profile run=d made up timer",
     "W_MAKE I_LIMITS fail:sandbox_lost W_END"},

    {"without control groups init watches, and is asked", "no-groups " READY "reply done=0 usage",
     "W_MAKE I_WATCH start K_RUN I_USAGE done:ok W_END"},
    {"the watchdog ends it for its memory", "no-groups " READY "reply limit=1 usage reply usage",
     "W_MAKE I_WATCH start K_RUN I_USAGE I_KILL I_USAGE done:memory_exceeded/memory W_END"},
    {"what it met and survived is told", "no-groups " READY "reply limit=4 done=0 usage",
     "W_MAKE I_WATCH start K_RUN I_USAGE done:ok/pids W_END"},
    {"what it was ended for comes first",
     "no-groups " READY "reply limit=4 limit=1 usage reply usage",
     "W_MAKE I_WATCH start K_RUN I_USAGE I_KILL I_USAGE done:memory_exceeded/memory W_END"},
};

/* ---- what it shows ---- */

#define SHOWS     "profile run=v made up "
#define DISPLAY   "{\"ev\":\"display\",\"data\":{\"text/plain\":\"x\"}} "
#define RESULT    "{\"ev\":\"result\",\"data\":{\"text/plain\":\"y\"}} "
#define SAY_BOTH  "say=" DISPLAY "say=" RESULT
#define SAY_LARGE "busy=1 say-file=" RESULT

static const struct rig_case shown[] = {
    {"what it shows is told and answered", SHOWS SAY_BOTH "done=0",
     BEGUN " display go result go done:ok+2 W_END"},
    {"what it printed before comes before it", SHOWS "out=a say=" DISPLAY "out=b done=0",
     BEGUN " out:a display go out:b done:ok+1 W_END"},
    {"what is in a file is read beside the loop", SHOWS SAY_LARGE "idle done=0",
     BEGUN " idle result go done:ok+1 W_END"},
    {"so is what is long", SHOWS "busy=2 say-long=" DISPLAY "idle done=0",
     BEGUN " idle display go done:ok+1 W_END"},
    {"its end waits for that", SHOWS SAY_LARGE "done=0 idle", BEGUN " idle result done:ok+1 W_END"},
    {"so does its death", SHOWS SAY_LARGE "killed=11 idle",
     BEGUN " idle result done:killed+1 W_END"},
    {"what it said before it died counts, too", SHOWS SAY_LARGE "done=3 killed=9 idle",
     BEGUN " idle result done:error+1 W_END"},
    {"what it shows is its, whatever else it says", SHOWS "say={\"ev\":\"x\"} say={} done=0",
     BEGUN " go go done:ok W_END"},

    {"one that does not wait for its answer is ended",
     SHOWS "hold say=" DISPLAY "say=" DISPLAY "reply",
     BEGUN " display " ENDING " done:killed+1 W_END"},
    {"or while it is being read", SHOWS SAY_LARGE "say=" DISPLAY "reply idle",
     BEGUN " " ENDING " done:killed W_END idle"},
    {"one that says what no kernel says is ended", SHOWS "say=x reply",
     BEGUN " " ENDING " done:killed W_END"},
    {"also beside the loop", SHOWS "busy=1 say-file=x idle reply",
     BEGUN " idle " ENDING " done:killed W_END"},
    {"whoever shows nothing says nothing", READY "say=" DISPLAY "reply",
     BEGUN " " ENDING " done:killed W_END"},

    {"a slow reader holds it up", SHOWS "hold say=" DISPLAY "unhold done=0",
     BEGUN " display go done:ok+1 W_END"},
    {"it rests from what it says", SHOWS "cost=300 say=" DISPLAY "rested done=0",
     BEGUN " display rested go done:ok+1 W_END"},
    {"to hear it is processor time that it has", SHOWS "cost=5000 say=" DISPLAY "look reply",
     BEGUN " display " ENDING " done:killed/cpu+1 W_END"},
    {"its time is not up while it is being read, twice", SHOWS SAY_LARGE "timer timer idle done=0",
     BEGUN " idle result go done:ok+1 W_END"},
    {"but no more", SHOWS SAY_LARGE "timer timer timer reply idle",
     BEGUN " " ENDING " done:timeout/time W_END idle"},
    {"who left hears nothing of that", SHOWS SAY_LARGE "cancel idle", BEGUN " W_END idle"},
    {"nor of one whose sandbox died", SHOWS SAY_LARGE "gone idle",
     BEGUN " fail:sandbox_lost W_END idle"},
};

static struct rig rig;
static struct run *run;

static void on_start(void *arg, struct run *r) {
    (void)r;
    rig_say(arg, "start");
}

static void on_output(void *arg, int stream, const void *data, size_t len) {
    const char *name = stream == 1 ? "out" : "err";
    if (len > 20)
        rig_say(arg, "%s:#%zu", name, len);
    else
        rig_say(arg, "%s:%.*s", name, (int)len, (const char *)data);
}

static void on_event(void *arg, const char *type, const struct buf *json) {
    assert_int_equal(json->data[json->len - 1], '}');
    rig_say(arg, "%s", type);
}

static void on_stdin(void *arg, size_t taken) {
    rig_say(arg, "taken:%zu", taken);
}

static bool on_file(void *arg, const char *path, uint64_t size, int *fd) {
    (void)fd;
    assert_int_equal(size, 10);
    rig_say(arg, "file:%s", path);
    return false;
}

/* The result is written as the API has it, whatever a script is about. */
static void on_done(void *arg, struct run *r, const struct err *why) {
    static const char *const limits[] = {"",      "/memory", "/time",   "/cpu",
                                         "/pids", "/disk",   "/output", "/network"};
    char more[16] = "";
    if (r->shown.n)
        snprintf(more, sizeof more, "+%u", r->shown.n);
    if (why) {
        rig_say(arg, "fail:%s", *why->kind ? why->kind : "-");
    } else {
        AUTO_ROPE result = ROPE_INIT;
        const struct result_options none = {0};
        run_result(r, &none, &result);
        assert_true(result.bytes > 0);
        rig_say(arg, "done:%s%s%s%s", run_receipt(r).status, limits[r->outcome.limit],
                r->outcome.denied.n == 1 ? "-denied" : "", more);
    }
    run = NULL;
}

static void ask(struct rig *r, const char *flags) {
    const struct run_callbacks cb = {.arg = r,
                                     .on_start = on_start,
                                     .on_output = on_output,
                                     .on_event = on_event,
                                     .on_stdin = on_stdin,
                                     .on_file = on_file,
                                     .on_done = on_done};
    struct run_request q = {.profile = xstrdup("base"),
                            .tenant = xstrdup("a"),
                            .code_fd = -1,
                            .code = (uint8_t *)xstrdup("pass"),
                            .code_len = 4};
    struct err e;
    q.flags = strchr(flags, 's')   ? RUN_STDIN
              : strchr(flags, 'f') ? RUN_FILES
              : strchr(flags, 'v') ? RUN_SHOWN | RUN_VALUE | RUN_PNG
                                   : 0;
    q.limits.disk_mb = strchr(flags, 'd') ? 32 : 0;
    q.limits.memory_mb = strchr(flags, 'm') ? 32 : 0;
    q.limits.open_files = q.limits.pids = q.limits.cpus_percent = strchr(flags, 'o') ? 32 : 0;
    assert_int_equal(run_new(r->engine, &q, &cb, &run, &e), 0);
}

static void done(struct rig *r, const char *value) {
    struct wire_out o;
    struct err e;
    bool interrupted = strcmp(value, "int") == 0;
    const struct done_msg d = {.how = interrupted ? DONE_INTERRUPTED : DONE_EXIT,
                               .exit_code = interrupted ? 130 : (uint32_t)atoi(value),
                               .name = "",
                               .value = "",
                               .result_fd = -1};
    done_put(&o, &d);
    assert_int_equal(wire_send(rig_process(r)->peer[0], &o, &e), WIRE_SENT);
}

static void print(struct rig *r, const char *text, size_t len) {
    assert_int_equal(write(rig_process(r)->peer[2], text, len), len);
}

/* A name was made in the workspace. */
static void touch(struct rig *r) {
    char path[40];
    const struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    snprintf(path, sizeof path, "/proc/self/fd/%d", rig_sandbox(r)->fds[SANDBOX_WORKSPACE]);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void reply(struct rig *r, bool usage) {
    struct wire_out o;
    struct err e;
    wire_begin(&o, WIRE_I_REPLY);
    if (usage)
        i_reply_usage_put(&o, &(struct i_reply_usage){1000, 2000});
    assert_int_equal(wire_send(rig_sandbox(r)->req, &o, &e), WIRE_SENT);
}

static void rest(struct rig *r) {
    rig_say(r, "rested");
    rig_fire(r, &run->rest.timer);
}

static bool goes_on(void) {
    return run && run_is_heard(run);
}

static bool on_own_word(struct rig *r, const char *word, const char *value) {
    if (strcmp(word, "done") == 0) {
        done(r, value);
    } else if (strcmp(word, "last") == 0) {
        print(r, value, strlen(value));
        done(r, "0");
    } else if (strcmp(word, "flood") == 0) {
        char text[150];
        memset(text, 'x', sizeof text);
        print(r, text, sizeof text);
    } else if (strcmp(word, "touch") == 0) {
        touch(r);
    } else if (strcmp(word, "deaf") == 0) {
        fd_close(&rig_process(r)->peer[1]);
    } else if (strcmp(word, "usage") == 0) {
        reply(r, true);
    } else if (strcmp(word, "answer+timer") == 0) {
        reply(r, false);
        run->timer.fn(&run->timer); /* as the loop does, before it looks what else is there */
    } else if (strcmp(word, "hold") == 0 || strcmp(word, "unhold") == 0) {
        run_hold(run, word[0] == 'h');
    } else {
        return rig_beside_word(r, word, value, goes_on);
    }
    return true;
}

static void cancel(void) {
    run_cancel(run);
    run = NULL;
}

static bool on_word(struct rig *r, const char *word, const char *value) {
    if (strcmp(word, "run") == 0)
        ask(r, value);
    else if (strcmp(word, "size") == 0)
        r->engine->config.profiles[0].pool = 1;
    else if (strcmp(word, "no-groups") == 0)
        r->no_groups = true;
    else if (strcmp(word, "old") == 0)
        r->old = true;
    else if (strcmp(word, "timer") == 0)
        rig_fire(r, &run->timer);
    else if (strcmp(word, "look") == 0)
        rig_fire(r, &run->cpu_limit.timer);
    else if (strcmp(word, "rested") == 0)
        rest(r);
    else if (strcmp(word, "cancel") == 0)
        cancel();
    else if (strcmp(word, "kill") == 0)
        run_signal(run, SIGKILL);
    else if (strcmp(word, "int") == 0)
        run_signal(run, SIGINT);
    else if (strcmp(word, "stdin") == 0)
        run_stdin(run, value, strlen(value));
    else
        return on_own_word(r, word, value);
    return true;
}

static void play(const struct rig_case *script) {
    const struct config c = rig_config();
    rig_init(&rig, &c);
    rig.word = on_word;
    rig_play(&rig, script);
    rig_beside_end(&rig);
    rig_done(&rig);
}

static void a_program_ends_as_the_script_says(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        play(&cases[i]);
}

static void a_program_shows_what_the_script_says(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        play(&shown[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_ends_as_the_script_says),
        cmocka_unit_test(a_program_shows_what_the_script_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
