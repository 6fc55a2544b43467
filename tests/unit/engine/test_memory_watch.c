/* A large disk is no memory: the limit of a control group while its program has more than its
 * memory, and afterwards. */

#include "engine/oneshot/run.h"
#include "rig.h"

#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* has=MB: what the group holds; files=MB: how much of it is page cache. look: the watch looks; what
 * it made the limit is said (limit:MB), if anything. The program has 256 MB of memory and 200 of
 * disk. */
#define READY "profile run made up "
#define BEGUN "W_MAKE start K_RUN"

static const struct rig_case cases[] = {
    {"within its memory nothing is done", READY "has=200 look", BEGUN},
    {"with more it may not grow, and is not killed for what it has by then", READY "has=300 look",
     BEGUN " limit:308"},
    {"one that goes on growing meets the kernel", READY "has=300 look has=307 look",
     BEGUN " limit:308"},
    {"the limit is never more than both together", READY "has=455 look", BEGUN " limit:456"},
    {"what is in files is no memory", READY "has=400 files=160 look", BEGUN},
    {"when it is given back, the limit is as before", READY "has=300 look has=250 look",
     BEGUN " limit:308 limit:456"},
    {"and then it is looked at again", READY "has=300 look has=250 look has=310 look",
     BEGUN " limit:308 limit:456 limit:318"},
};

static struct rig rig;

static void on_start(void *arg, struct run *r) {
    (void)r;
    rig_say(arg, "start");
}

static void on_done(void *arg, struct run *r, const struct err *why) {
    (void)arg, (void)r, (void)why;
}

static void ask(struct rig *r) {
    const struct run_callbacks cb = {.arg = r, .on_start = on_start, .on_done = on_done};
    struct run_request q = {.profile = xstrdup("base"),
                            .tenant = xstrdup("a"),
                            .code_fd = -1,
                            .code = (uint8_t *)xstrdup("pass"),
                            .code_len = 4};
    struct run *run;
    struct err e;
    assert_int_equal(run_new(r->engine, &q, &cb, &run, &e), 0);
}

static void look(struct rig *r) {
    char text[32] = "";
    rig_cgroup(r, KNOB_MEMORY_MAX, "%s", "");
    rig_fire(r, &r->engine->look);
    if (pread(rig_sandbox(r)->cgroup[KNOB_MEMORY_MAX], text, sizeof text - 1, 0) > 0)
        rig_say(r, "limit:%llu", strtoull(text, NULL, 10) >> 20);
}

static bool on_word(struct rig *r, const char *word, const char *value) {
    unsigned long long bytes = strtoull(value, NULL, 10) << 20;
    if (strcmp(word, "run") == 0)
        ask(r);
    else if (strcmp(word, "has") == 0)
        rig_cgroup(r, KNOB_MEMORY_USAGE, "%llu\n", bytes);
    else if (strcmp(word, "files") == 0)
        rig_cgroup(r, KNOB_MEMORY_STAT, "inactive_file %llu\nshmem 0\n", bytes);
    else if (strcmp(word, "look") == 0)
        look(r);
    else
        return false;
    return true;
}

static void a_limit_is_set_as_the_script_says(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct config c = rig_config();
        c.defaults.disk_mb = c.maxima.disk_mb = 200;
        rig_init(&rig, &c);
        rig.word = on_word;
        rig_play(&rig, &cases[i]);
        rig_done(&rig);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_limit_is_set_as_the_script_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
