/* config/options, file, profiles and resolve: where values come from, which wins, what is refused.
 */

#include "config/resolve.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/log.h"
#include "config/config.h"
#include "config/file.h"
#include "config/options.h"
#include "config/profiles.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* No variable of the one who runs the tests, and no file of theirs. */
static int setup(void **state) {
    (void)state;
    const char *output = getenv("CMOCKA_MESSAGE_OUTPUT"); /* which cmocka looks up for each line */
    AUTO_FREE char *kept = output ? xstrdup(output) : NULL;
    clearenv();
    if (kept)
        setenv("CMOCKA_MESSAGE_OUTPUT", kept, 1);
    setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
    setenv("CLOCHE_LIBEXEC", "/nonexistent", 1);
    return 0;
}

/* NAME=VALUE of the environment, the texts of .env and of the file, and a command line; any may be
 * NULL. */
struct sources {
    const char *env, *env_file, *file;
    const char *args[4];
};

static void write_beside(const char *dir, const char *name, const char *text) {
    struct err e;
    AUTO_FD at = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    AUTO_FD fd = openat(at, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_int_equal(fd_write_all(fd, text, strlen(text), &e), 0);
}

static void remove_all(const char *dir) {
    AUTO_FD at = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    unlinkat(at, "config.json", 0);
    unlinkat(at, ".env", 0);
    assert_int_equal(rmdir(dir), 0);
}

static struct options *collect(const struct sources *s, struct err *e) {
    setup(NULL);
    struct options *o = options_new();
    if (s->env) {
        AUTO_FREE char *pair = xstrdup(s->env);
        char *value = strchr(pair, '=');
        *value++ = '\0';
        setenv(pair, value, 1);
    }
    char dir[] = "/tmp/test-config-resolve-XXXXXX";
    assert_non_null(mkdtemp(dir));
    if (s->file || s->env_file) {
        AUTO_BUF path = BUF_INIT;
        buf_addf(&path, "%s/config.json", dir);
        write_beside(dir, "config.json", s->file ? s->file : "{}");
        assert_int_equal(options_set_flag(o, "config", path.data, e), 0);
    }
    if (s->env_file)
        write_beside(dir, ".env", s->env_file);
    char *argv[6] = {(char *)"serve"};
    int argc = 1;
    for (; argc < 5 && s->args[argc - 1]; argc++)
        argv[argc] = (char *)s->args[argc - 1];
    const struct verb_flag none[] = {{0}};
    int rc = options_parse(o, argc, argv, none, e);
    if (rc == 0)
        rc = options_load(o, e);
    remove_all(dir);
    if (rc == 0)
        return o;
    options_free(o);
    return NULL;
}

static int resolve(const struct sources *s, struct config *ret, struct err *e) {
    AUTO_OPTIONS o = collect(s, e);
    return o ? options_resolve(o, ret, e) : -1;
}

static void defaults_are_those_that_clients_know(void **state) {
    (void)state;
    struct config c = {0};
    struct err e;
    assert_int_equal(resolve(&(struct sources){0}, &c, &e), 0);
    assert_int_equal(c.defaults.timeout_ms, 2000);
    assert_int_equal(c.defaults.cpu_seconds, 5);
    assert_int_equal(c.defaults.memory_mb, 256);
    assert_int_equal(c.defaults.output_bytes, 1000000);
    assert_int_equal(c.defaults.cpus_percent, 100);
    assert_int_equal(c.maxima.timeout_ms, 60000);
    assert_string_equal(c.minimum, "strict");
    assert_string_equal(c.pylib, "/nonexistent/py");
    assert_int_equal(c.log_level, LOG_INFO);
    assert_int_equal(config_named(&c, c.nprofiles), 2);
    assert_string_equal(c.profiles[0].name, "base");
    assert_int_equal(c.profiles[0].pool, 4);
    assert_string_equal(c.profiles[1].name, "data");
    assert_int_equal(c.profiles[1].pool, 2);
    assert_int_equal(c.live.timeout_ms, 30000);
    assert_int_equal(c.live.memory_mb, 512);
    assert_int_equal(c.live.output_bytes, 16 << 20);
    assert_int_equal(c.live.pids, c.defaults.pids);
    assert_int_equal(c.live_ttl_s, 3600);
    assert_int_equal(c.live_idle_s, 900);
    config_done(&c);
}

static const struct winner_case {
    const char *behaviour;
    struct sources from;
    const char *name, *value;
    enum origin origin;
} winner_cases[] = {
    {"default", {0}, "memory_mb", "256", ORIGIN_DEFAULT},
    {"file over default", {.file = "{\"memory_mb\": 300}"}, "memory_mb", "300", ORIGIN_FILE},
    {"environment over file",
     {.env = "CLOCHE_MEMORY_MB=400", .file = "{\"memory_mb\": 300}"},
     "memory_mb",
     "400",
     ORIGIN_ENV},
    {".env over file",
     {.env_file = "CLOCHE_MEMORY_MB=350\n", .file = "{\"memory_mb\": 300}"},
     "memory_mb",
     "350",
     ORIGIN_ENV_FILE},
    {"another service's name in .env",
     {.env_file = "MEMORY_LIMIT_MB=350\n"},
     "memory_mb",
     "350",
     ORIGIN_ENV_FILE},
    {"our own name wins in .env",
     {.env_file = "CLOCHE_MEMORY_MB=350\nMEMORY_LIMIT_MB=1\n"},
     "memory_mb",
     "350",
     ORIGIN_ENV_FILE},
    {"what stands last in .env",
     {.env_file = "MEMORY_LIMIT_MB=1\nMEMORY_LIMIT_MB=\nMEMORY_LIMIT_MB=2\n"},
     "memory_mb",
     "2",
     ORIGIN_ENV_FILE},
    {"an empty variable in .env is none",
     {.env_file = "MEMORY_LIMIT_MB=1\nMEMORY_LIMIT_MB=\n"},
     "memory_mb",
     "256",
     ORIGIN_DEFAULT},
    {"another's variable in .env is nothing to us",
     {.env_file = "REDIS_URL=redis://x\nPATH=/nowhere\n"},
     "memory_mb",
     "256",
     ORIGIN_DEFAULT},
    {"environment over .env, whatever its name",
     {.env = "MEMORY_LIMIT_MB=400", .env_file = "CLOCHE_MEMORY_MB=350\n"},
     "memory_mb",
     "400",
     ORIGIN_ENV},
    {"a live sandbox has what a program has",
     {.args = {"--pids", "33"}},
     "live_pids",
     "33",
     ORIGIN_DEFAULT},
    {"unless it is given",
     {.args = {"--pids", "33", "--live-pids", "44"}},
     "live_pids",
     "44",
     ORIGIN_FLAG},
    {"flag over all",
     {.env = "CLOCHE_MEMORY_MB=400",
      .file = "{\"memory_mb\": 300}",
      .args = {"--memory-mb", "500"}},
     "memory_mb",
     "500",
     ORIGIN_FLAG},
    {"flag with an equals sign", {.args = {"--memory-mb=500"}}, "memory_mb", "500", ORIGIN_FLAG},
    {"another service's name", {.env = "MEMORY_LIMIT_MB=512"}, "memory_mb", "512", ORIGIN_ENV},
    {"an empty variable is none", {.env = "MEMORY_LIMIT_MB="}, "memory_mb", "256", ORIGIN_DEFAULT},
    {"a string in the file", {.file = "{\"cpus\": \"1.5\"}"}, "cpus", "1.5", ORIGIN_FILE},
    {"a real in the file", {.file = "{\"cpus\": 0.25}"}, "cpus", "0.25", ORIGIN_FILE},
};

static void the_nearest_source_wins(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof winner_cases / sizeof winner_cases[0]; i++) {
        const struct winner_case *t = &winner_cases[i];
        struct err e;
        AUTO_OPTIONS o = collect(&t->from, &e);
        if (!o || strcmp(options_text(o, t->name), t->value) != 0 ||
            options_origin(o, t->name) != t->origin)
            fail_msg("%s: %s", t->behaviour, o ? options_text(o, t->name) : e.text);
        struct config c = {0};
        assert_int_equal(options_resolve(o, &c, &e), 0);
        config_done(&c);
    }
}

static void every_name_and_variable_is_there_once(void **state) {
    (void)state;
    for (size_t i = 0; i < settings_count; i++) {
        const struct setting *s = &settings[i];
        assert_true(*s->help);
        for (size_t k = 0; k < i; k++) {
            if (strcmp(settings[k].name, s->name) == 0)
                fail_msg("two settings %s", s->name);
            if (s->variable && settings[k].variable &&
                strcmp(settings[k].variable, s->variable) == 0)
                fail_msg("two settings from %s", s->variable);
        }
    }
}

static void our_own_variable_beats_the_other_services(void **state) {
    (void)state;
    struct err e;
    setenv("MEMORY_LIMIT_MB", "100", 1);
    setenv("CLOCHE_MEMORY_MB", "200", 1);
    AUTO_OPTIONS o = options_new();
    assert_int_equal(options_load(o, &e), 0);
    assert_string_equal(options_text(o, "memory_mb"), "200");
}

/* `says` must be in the error: it names what was wrong. */
static const struct refused_case {
    const char *behaviour;
    struct sources from;
    const char *says;
} refused_cases[] = {
    {"number out of bounds", {.args = {"--pool", "9999"}}, "--pool is \"9999\""},
    {"word for a number", {.env = "CLOCHE_QUEUE_MS=soon"}, "CLOCHE_QUEUE_MS is \"soon\""},
    {"other service's variable", {.env = "MAX_OUTPUT_BYTES=-1"}, "MAX_OUTPUT_BYTES is \"-1\""},
    {"value in the file", {.file = "{\"pids\": 0}"}, "pids in /tmp/"},
    {"value in .env", {.env_file = "CLOCHE_PIDS=0\n"}, "CLOCHE_PIDS in /tmp/"},
    {"line of .env", {.env_file = "# pids\nCLOCHE_PIDS 5\n"}, "/.env: line 2: NAME=VALUE"},
    {"unknown key", {.file = "{\"pidz\": 1}"}, "\"pidz\""},
    {"list for a number", {.file = "{\"pids\": [1]}"}, "\"pids\" must be"},
    {"not an object", {.file = "[]"}, "object"},
    {"not JSON", {.file = "{"}, "JSON"},
    {"key twice", {.file = "{\"pids\": 1, \"pids\": 2}"}, "pids"},
    {"unknown flag", {.args = {"--nope"}}, "\"--nope\" is no option"},
    {"flag without value", {.args = {"--pool"}}, "needs a value"},
    {"argument", {.args = {"x"}}, "\"x\""},
    {"unknown cgroup", {.args = {"--cgroup", "v3"}}, "auto v2 v1 none"},
    {"unknown level", {.env = "LOG_LEVEL=loud"}, "LOG_LEVEL is \"loud\""},
    {"unknown profile", {.args = {"--profiles", "base,x"}}, "\"x\""},
    {"no profile", {.args = {"--profiles", ","}}, "no profile"},
    {"a twin's name", {.args = {"--profiles", "base+live"}}, "\"base+live\""},
    {"a twin's name in the file", {.file = "{\"profiles\": {\"a+live\": {}}}"}, "\"a+live\""},
    {"neither on nor off", {.env = "CLOCHE_LIVE=yes"}, "CLOCHE_LIVE is \"yes\""},
    {"live default above maximum",
     {.args = {"--live-memory-mb=5000", "--max-memory-mb=4000"}},
     "--live-memory-mb is 5000, above --max-memory-mb"},
    {"a life above the longest",
     {.args = {"--live-ttl-seconds=50", "--live-ttl-max-seconds=40"}},
     "--live-ttl-seconds is 50, above --live-ttl-max-seconds"},
    {"default above maximum",
     {.args = {"--timeout-ms=5000", "--max-timeout-ms=4000"}},
     "--timeout-ms is 5000, above --max-timeout-ms"},
    {"unknown profile key",
     {.file = "{\"profiles\": {\"a\": {\"pyton\": 1}}}"},
     "profiles.a.pyton"},
    {"relative interpreter", {.file = "{\"profiles\": {\"a\": {\"python\": \"x\"}}}"}, "absolute"},
    {"relative site", {.file = "{\"profiles\": {\"a\": {\"sites\": [\"x\"]}}}"}, "item 1"},
    {"bad module", {.file = "{\"profiles\": {\"a\": {\"preload\": [\"a\", \"b-c\"]}}}"}, "item 2"},
    {"module that ends in a dot",
     {.file = "{\"profiles\": {\"a\": {\"preload\": [\"a.\"]}}}"},
     "1"},
    {"bad profile name", {.file = "{\"profiles\": {\"A\": {}}}"}, "\"A\""},
    {"profile named auto", {.file = "{\"profiles\": {\"auto\": {}}}"}, "auto"},
    {"profiles as a list", {.file = "{\"profiles\": [\"base\"]}"}, "object"},
    {"pool of a profile", {.file = "{\"profiles\": {\"a\": {\"pool\": -1}}}"}, "profiles.a.pool"},
    {"profile that is a number", {.file = "{\"profiles\": {\"a\": 1}}"}, "profiles.a"},
};

static void mistakes_are_named(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof refused_cases / sizeof refused_cases[0]; i++) {
        const struct refused_case *t = &refused_cases[i];
        struct config c = {0};
        struct err e = {0};
        if (resolve(&t->from, &c, &e) == 0)
            fail_msg("not refused: %s", t->behaviour);
        if (!strstr(e.text, t->says) || !e.kind[0])
            fail_msg("%s: (%s) %s", t->behaviour, e.kind, e.text);
    }
}

static void limits_give_way_to_what_was_chosen(void **state) {
    (void)state;
    struct config c = {0};
    struct err e;
    assert_int_equal(resolve(&(struct sources){.env = "MAX_EXEC_TIMEOUT_MS=1000"}, &c, &e), 0);
    assert_int_equal(c.defaults.timeout_ms, 1000);
    assert_int_equal(c.live.timeout_ms, 1000);
    config_done(&c);
    assert_int_equal(resolve(&(struct sources){.env = "MEMORY_LIMIT_MB=8192"}, &c, &e), 0);
    assert_int_equal(c.maxima.memory_mb, 8192);
    config_done(&c);
}

static void levels_are_read_as_other_services_write_them(void **state) {
    (void)state;
    static const struct {
        const char *env;
        uint32_t level;
    } cases[] = {{"LOG_LEVEL=INFO", LOG_INFO},
                 {"LOG_LEVEL=Warning", LOG_WARN},
                 {"LOG_LEVEL=CRITICAL", LOG_ERROR},
                 {"CLOCHE_LOG_LEVEL=debug", LOG_DEBUG}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct config c = {0};
        struct err e;
        assert_int_equal(resolve(&(struct sources){.env = cases[i].env}, &c, &e), 0);
        assert_int_equal(c.log_level, cases[i].level);
        config_done(&c);
    }
}

static const char *first(const struct config_list *l) {
    return l->items ? l->items[0] : "";
}

static void the_file_adds_and_overrides_profiles(void **state) {
    (void)state;
    struct config c = {0};
    struct err e;
    const char *file = "{\"pool\": 7, \"profiles\": {"
                       "\"data\": {\"pool\": 1, \"preload\": [\"numpy\"]},"
                       "\"mine\": {\"python\": \"/opt/venv/bin/python\", \"sites\": [\"/opt/s\"],"
                       "           \"read_only\": [\"/opt/models\"], \"zygotes\": 3}}}";
    assert_int_equal(resolve(&(struct sources){.file = file}, &c, &e), 0);
    assert_int_equal(config_named(&c, c.nprofiles), 3);
    assert_int_equal(c.profiles[0].pool, 7);
    assert_int_equal(c.profiles[1].pool, 1);
    assert_int_equal(c.profiles[1].preload.n, 1);
    assert_string_equal(c.profiles[1].python, "/usr/bin/python3");
    assert_string_equal(c.profiles[2].name, "mine");
    assert_string_equal(first(&c.profiles[2].binds), "/opt/models");
    assert_int_equal(c.profiles[2].zygotes, 3);
    assert_int_equal(c.profiles[2].pool, 7);
    config_done(&c);
    /* A variable beats even the profile's own number. */
    struct sources both = {.env = "SANDBOX_POOL_SIZE=5", .file = file};
    assert_int_equal(resolve(&both, &c, &e), 0);
    assert_int_equal(c.profiles[1].pool, 5);
    config_done(&c);
}

static void profiles_can_be_left_out(void **state) {
    (void)state;
    struct config c = {0};
    struct err e;
    const char *file = "{\"profiles\": {\"data\": null, \"mine\": {}}}";
    assert_int_equal(resolve(&(struct sources){.file = file}, &c, &e), 0);
    assert_int_equal(config_named(&c, c.nprofiles), 2);
    assert_string_equal(c.profiles[1].name, "mine");
    config_done(&c);
    struct sources named = {.file = file, .args = {"--profiles", "mine"}};
    assert_int_equal(resolve(&named, &c, &e), 0);
    assert_int_equal(config_named(&c, c.nprofiles), 1);
    assert_string_equal(c.profiles[0].name, "mine");
    config_done(&c);
}

static void each_profile_has_a_twin_for_live_kernels(void **state) {
    (void)state;
    struct config c = {0};
    struct err e;
    const char *file = "{\"profiles\": {\"data\": null, \"mine\": {\"sites\": [\"/s\"],"
                       "\"python\": \"/p\", \"preload\": [\"x\"], \"pool\": 9, \"zygotes\": 5}}}";
    assert_int_equal(resolve(&(struct sources){.file = file, .env = "CLOCHE_LIVE_POOL=3"}, &c, &e),
                     0);
    assert_int_equal(c.nprofiles, 4);
    assert_string_equal(c.profiles[2].name, "base+live");
    const struct config_profile *twin = &c.profiles[3];
    assert_string_equal(twin->name, "mine+live");
    assert_string_equal(twin->python, "/p");
    assert_string_equal(first(&twin->sites), "/s");
    assert_string_equal(first(&twin->preload), "x");
    assert_int_equal(twin->pool, 3);
    assert_int_equal(twin->zygotes, 1);
    assert_int_equal(twin->live, 1);
    config_done(&c);
    static const struct sources off[] = {{.args = {"--live", "off"}}, {.args = {"--http", "off"}}};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(resolve(&off[i], &c, &e), 0);
        assert_int_equal(c.nprofiles, 2);
        config_done(&c);
    }
}

/* There are as many twins, and no fewer profiles of the operator's for that. */
static void profiles_are_bounded(void **state) {
    (void)state;
    struct config c = {0};
    struct err e;
    AUTO_BUF file = BUF_INIT;
    buf_adds(&file, "{\"profiles\": {\"data\": null");
    for (int i = 1; i < CONFIG_MAX_NAMED; i++)
        buf_addf(&file, ", \"p%d\": {}", i);
    AUTO_BUF more = BUF_INIT;
    buf_addf(&more, "%s, \"one-more\": {}}}", file.data);
    buf_adds(&file, "}}");
    assert_int_equal(resolve(&(struct sources){.file = file.data}, &c, &e), 0);
    assert_int_equal(c.nprofiles, CONFIG_MAX_PROFILES);
    config_done(&c);
    assert_int_equal(resolve(&(struct sources){.file = more.data}, &c, &e), -1);
    assert_non_null(strstr(e.text, "more than 16 profiles"));
}

static void a_private_engine_starts_only_what_may_be_needed(void **state) {
    (void)state;
    static const struct {
        const char *behaviour, *profile, *code, *kept;
    } cases[] = {
        {"nothing imported", "auto", "print(1)", "base "},
        {"a module of base", "auto", "import json", "base "},
        {"a module of data", "auto", "import numpy as np", "base data "},
        {"deep inside", "auto", "def f():\n  from scipy import stats", "base data "},
        {"part of a longer word", "auto", "numpyx = xnumpy = my_numpy = 1", "base "},
        {"at the very end", "auto", "import pandas", "base data "},
        {"named", "data", "print(1)", "data "},
        {"named although the code wants more", "base", "import numpy", "base "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct config c = {0};
        struct err e;
        assert_int_equal(resolve(&(struct sources){0}, &c, &e), 0);
        assert_int_equal(
            profiles_narrow(&c, cases[i].profile, cases[i].code, strlen(cases[i].code), &e), 0);
        AUTO_BUF kept = BUF_INIT;
        for (unsigned k = 0; k < c.nprofiles; k++)
            buf_addf(&kept, "%s ", c.profiles[k].name);
        if (strcmp(kept.data, cases[i].kept) != 0)
            fail_msg("%s: %s", cases[i].behaviour, kept.data);
        config_done(&c);
    }
    struct config c = {0};
    struct err e;
    assert_int_equal(resolve(&(struct sources){0}, &c, &e), 0);
    assert_int_equal(profiles_narrow(&c, "base+live", "", 0, &e), -1);
    assert_int_equal(profiles_narrow(&c, "nope", "", 0, &e), -1);
    assert_string_equal(e.kind, "unknown_profile");
    config_done(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(defaults_are_those_that_clients_know, setup),
        cmocka_unit_test_setup(the_nearest_source_wins, setup),
        cmocka_unit_test(every_name_and_variable_is_there_once),
        cmocka_unit_test_setup(our_own_variable_beats_the_other_services, setup),
        cmocka_unit_test_setup(mistakes_are_named, setup),
        cmocka_unit_test_setup(limits_give_way_to_what_was_chosen, setup),
        cmocka_unit_test_setup(levels_are_read_as_other_services_write_them, setup),
        cmocka_unit_test_setup(the_file_adds_and_overrides_profiles, setup),
        cmocka_unit_test_setup(profiles_can_be_left_out, setup),
        cmocka_unit_test_setup(each_profile_has_a_twin_for_live_kernels, setup),
        cmocka_unit_test_setup(profiles_are_bounded, setup),
        cmocka_unit_test_setup(a_private_engine_starts_only_what_may_be_needed, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
