/* The layers of this machine, minima and their messages, and what diagnose makes of an errno. */

#include "sandbox/probe.h"

#include "sandbox/diagnose.h"

#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define BIT(layer) (UINT32_C(1) << PROBE_##layer)
#define ALL        ((UINT32_C(1) << PROBE_LAYERS_) - 1)
#define STRICT     (ALL & ~(BIT(ids) | BIT(cgroup) | BIT(landlock) | BIT(egress)))

static const struct {
    const char *behaviour, *text;
    uint32_t layers;
    const char *says; /* NULL: it is accepted */
} minimum_cases[] = {
    {"strict", "strict", STRICT, NULL},
    {"none", "none", 0, NULL},
    {"one layer", "landlock", BIT(landlock), NULL},
    {"commas", "user_ns,pid_ns", BIT(user_ns) | BIT(pid_ns), NULL},
    {"spaces", "user_ns pid_ns", BIT(user_ns) | BIT(pid_ns), NULL},
    {"both, and more than needed", " , strict,, cgroup ", STRICT | BIT(cgroup), NULL},
    {"a layer twice", "proc proc", BIT(proc), NULL},
    {"none and a layer", "none,seccomp", BIT(seccomp), NULL},
    {"every layer", "strict ids cgroup landlock egress", ALL, NULL},
    {"a word that is no layer", "strict,selinux", 0, "\"selinux\""},
    {"the beginning of a layer", "user", 0, "\"user\""},
    {"more than a layer", "user_nsx", 0, "\"user_nsx\""},
    {"capitals", "STRICT", 0, "\"STRICT\""},
    {"empty", "", 0, "empty"},
    {"only separators", " , ", 0, "empty"},
};

static void reads_minima(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof minimum_cases / sizeof *minimum_cases; i++) {
        uint32_t layers = 0;
        struct err e = {0};
        int r = probe_minimum(minimum_cases[i].text, &layers, &e);
        const char *says = minimum_cases[i].says;
        if ((r < 0) != (says != NULL) || layers != minimum_cases[i].layers ||
            (says && !strstr(e.text, says)))
            fail_msg("%s: %d %x \"%s\"", minimum_cases[i].behaviour, r, layers, e.text);
    }
}

static void every_layer_has_words(void **state) {
    (void)state;
    for (enum probe_layer l = 0; l < PROBE_LAYERS_; l++) {
        uint32_t layers;
        struct err e;
        assert_int_equal(probe_minimum(probe_layer_name(l), &layers, &e), 0);
        assert_int_equal(layers, UINT32_C(1) << l);
        assert_true(*probe_layer_what(l) && *probe_layer_lost(l));
    }
}

static void what_is_not_needed_may_be_missing(void **state) {
    (void)state;
    struct err e;
    struct probe p = {0};
    assert_int_equal(probe_check(&p, ALL, &e), 0);
    p.layers[PROBE_cgroup].state = PROBE_MISSING;
    p.layers[PROBE_ids].state = PROBE_WEAK;
    assert_int_equal(probe_check(&p, STRICT, &e), 0);
    assert_int_equal(probe_check(&p, 0, &e), 0);
}

static void a_weak_layer_that_is_named_is_not_enough(void **state) {
    (void)state;
    struct err e = {0};
    struct probe p = {0};
    p.layers[PROBE_cgroup] = (struct probe_result){PROBE_WEAK, "none usable", "run as root"};
    assert_int_equal(probe_check(&p, STRICT | BIT(cgroup), &e), -1);
    assert_non_null(strstr(e.text, "cgroup: none usable; to do: run as root"));
}

static void says_all_that_is_missing_and_how_to_get_the_first(void **state) {
    (void)state;
    struct err e = {0};
    struct probe p = {0};
    p.layers[PROBE_net_ns] = (struct probe_result){PROBE_MISSING, "limit is 0", "raise the limit"};
    p.layers[PROBE_seccomp] = (struct probe_result){PROBE_MISSING, "not there", "another kernel"};
    assert_int_equal(probe_check(&p, STRICT, &e), -1);
    assert_string_equal(e.kind, "below_minimum");
    if (!strstr(e.text, "net_ns, seccomp; net_ns: limit is 0; to do: raise the limit"))
        fail_msg("%s", e.text);
}

static void long_words_do_not_overflow_the_message(void **state) {
    (void)state;
    struct err e = {0};
    struct probe p = {0};
    for (enum probe_layer l = 0; l < PROBE_LAYERS_; l++) {
        p.layers[l].state = PROBE_MISSING;
        memset(p.layers[l].how, 'h', sizeof p.layers[l].how - 1);
        memset(p.layers[l].fix, 'f', sizeof p.layers[l].fix - 1);
    }
    assert_int_equal(probe_check(&p, ALL, &e), -1);
    assert_true(strlen(e.text) < sizeof e.text);
    assert_non_null(strstr(e.text, "to do: fff"));
}

static unsigned count_fds(void) {
    unsigned n = 0;
    DIR *d = opendir("/proc/self/fd");
    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

/* Holds on any machine that these tests can be developed on: user namespaces on, no masked /proc.
 */
static void this_machine_meets_the_strict_minimum(void **state) {
    (void)state;
    struct idmap ids;
    struct err e = {0};
    struct probe p;
    if (idmap_find("", &ids, &e) < 0)
        fail_msg("%s", e.text);
    unsigned fds = count_fds();
    probe_run(&ids, CGROUP_NONE, &p);
    assert_int_equal(count_fds(), fds);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
    if (probe_check(&p, STRICT, &e) < 0)
        fail_msg("%s", e.text);
    for (enum probe_layer l = 0; l < PROBE_LAYERS_; l++) {
        const struct probe_result *r = &p.layers[l];
        if (!*r->how || (r->state == PROBE_OK) != !*r->fix)
            fail_msg("%s: %d \"%s\" \"%s\"", probe_layer_name(l), (int)r->state, r->how, r->fix);
    }
    assert_int_equal(p.layers[PROBE_ids].state, ids.single ? PROBE_WEAK : PROBE_OK);
}

static void an_id_map_that_is_refused_is_a_missing_layer(void **state) {
    (void)state;
    struct idmap ids = {.helper = true, .uid = 1, .gid = 1, .count = 4000000000u};
    struct probe p;
    if (access("/usr/bin/newuidmap", X_OK) != 0)
        skip();
    probe_run(&ids, CGROUP_NONE, &p);
    assert_int_equal(p.layers[PROBE_user_ns].state, PROBE_MISSING);
    assert_int_equal(p.layers[PROBE_ids].state, PROBE_MISSING);
    assert_true(*p.layers[PROBE_user_ns].fix != '\0');
    assert_int_equal(p.layers[PROBE_seccomp].state, PROBE_OK);
}

static void no_process_may_be_started(void **state) {
    (void)state;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        /* An ordinary user that has a process already: the probe's own fork fails. */
        struct rlimit none = {0, 0};
        if (geteuid() == 0 && (setresgid(54321, 54321, 54321) || setresuid(54321, 54321, 54321)))
            _exit(1);
        setrlimit(RLIMIT_NPROC, &none);
        struct idmap ids = {.single = true, .uid = geteuid(), .gid = getegid(), .count = 1};
        struct probe p;
        probe_run(&ids, CGROUP_NONE, &p);
        for (enum probe_layer l = 0; l < PROBE_landlock; l++)
            if (l != PROBE_cores && /* for which nobody has to be started */
                (p.layers[l].state != PROBE_MISSING || !*p.layers[l].how || !*p.layers[l].fix))
                _exit(10 + (int)l);
        struct err e;
        err_set(&e, EAGAIN, "start init");
        diagnose(&e, DIAGNOSE_FORK);
        _exit(strstr(e.text, "start init (this user may have 0 processes") ? 0 : 2);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static const struct {
    const char *behaviour;
    enum diagnose_step step;
    int errnum;
    const char *says; /* NULL: nothing is added */
} diagnose_cases[] = {
    {"a limit on namespaces", DIAGNOSE_CLONE_NET, ENOSPC, "sysctl -w user.max_net_namespaces="},
    {"another kind of namespace", DIAGNOSE_CLONE_MOUNT, ENOSPC, "user.max_mnt_namespaces"},
    {"a kernel without a namespace", DIAGNOSE_CLONE_IPC, EINVAL, "CONFIG_IPC_NS"},
    {"a listener that is there already", DIAGNOSE_SECCOMP_LISTEN, EBUSY, "only one"},
    {"a group that is not ours", DIAGNOSE_CGROUP_WRITE, EACCES, "Delegate=yes"},
    {"a path that root inside cannot enter", DIAGNOSE_MOUNT_BIND, EACCES, "chmod o+rx"},
    {"fork without memory", DIAGNOSE_FORK, ENOMEM, "PID 1"},
    {"an errno that says it all", DIAGNOSE_MOUNT_BIND, ENOENT, NULL},
    {"a step that did not fail so", DIAGNOSE_FORK, EROFS, NULL},
};

static void explains_what_an_errno_means_here(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof diagnose_cases / sizeof *diagnose_cases; i++) {
        struct err e;
        err_set(&e, diagnose_cases[i].errnum, "step");
        diagnose(&e, diagnose_cases[i].step);
        const char *says = diagnose_cases[i].says;
        if (says ? !strstr(e.text, says) : strcmp(e.text, "step") != 0)
            fail_msg("%s: \"%s\"", diagnose_cases[i].behaviour, e.text);
    }
}

static void a_hint_never_overflows_the_error(void **state) {
    (void)state;
    struct err e;
    char text[ERR_TEXT_MAX];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    err_set(&e, ENOSPC, "%s", text);
    diagnose(&e, DIAGNOSE_CLONE_PID);
    assert_string_equal(e.text, text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_minima),
        cmocka_unit_test(every_layer_has_words),
        cmocka_unit_test(what_is_not_needed_may_be_missing),
        cmocka_unit_test(a_weak_layer_that_is_named_is_not_enough),
        cmocka_unit_test(says_all_that_is_missing_and_how_to_get_the_first),
        cmocka_unit_test(long_words_do_not_overflow_the_message),
        cmocka_unit_test(this_machine_meets_the_strict_minimum),
        cmocka_unit_test(an_id_map_that_is_refused_is_a_missing_layer),
        cmocka_unit_test(no_process_may_be_started),
        cmocka_unit_test(explains_what_an_errno_means_here),
        cmocka_unit_test(a_hint_never_overflows_the_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
