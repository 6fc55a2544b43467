/* sandbox/egress: the facts of the kernel, and what is said where one does not hold. */

#include "sandbox/egress/anyip.h"
#include "sandbox/egress/facts.h"

#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void give_up(unsigned cap) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[2];
    syscall(SYS_capget, &header, sets);
    sets[CAP_TO_INDEX(cap)].effective &= ~CAP_TO_MASK(cap);
    sets[CAP_TO_INDEX(cap)].permitted &= ~CAP_TO_MASK(cap);
    syscall(SYS_capset, &header, sets);
}

/* The first fact that does not hold without this capability (-1: with all); 255: there can be no
 * namespaces here. */
static int without(int cap) {
    int status;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct egress_finding f;
        if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
            _exit(255);
        if (cap >= 0)
            give_up((unsigned)cap);
        egress_try(&f);
        if (f.fact)
            print_error("fact %d: %s (%s)\n", f.fact, egress_fact(f.fact), strerror(f.errnum));
        _exit(f.fact);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 255)
        skip();
    return WEXITSTATUS(status);
}

static void all_hold_here(void **state) {
    (void)state;
    assert_int_equal(without(-1), 0);
}

static void the_first_that_does_not_is_named(void **state) {
    (void)state;
    int fact = without(CAP_NET_ADMIN);
    assert_non_null(strstr(egress_fact(fact), "route"));
    fact = without(CAP_NET_RAW);
    assert_non_null(strstr(egress_fact(fact), "raw socket"));
}

static void there_are_no_facts_beyond_the_last(void **state) {
    (void)state;
    int n = 1;
    while (*egress_fact(n))
        n++;
    assert_true(n > 10);
    assert_string_equal(egress_fact(0), "");
    assert_string_equal(egress_fact(-1), "");
}

static void what_is_inside_is_known_by_its_address(void **state) {
    (void)state;
    static const struct {
        const char *address;
        uint16_t port;
        bool inside;
    } cases[] = {
        {"127.0.0.1", 80, true},
        {"127.255.0.1", 80, true},
        {"0.0.0.0", 80, true},
        {"::", 80, true},
        {"::1", 80, true},
        {"10.0.2.15", 80, true},
        {"10.0.2.3", 80, true},
        {"fd00::15", 80, true},
        {"8.8.8.8", 53, true},
        {"2001:db8::1", 53, true},
        {"10.0.2.2", 80, false},
        {"8.8.8.8", 80, false},
        {"126.0.0.1", 80, false},
        {"128.0.0.1", 80, false},
        {"0.0.0.1", 80, false},
        {"::2", 80, false},
        {"fd00::16", 80, false},
        {"255.255.255.255", 80, false},
        {"169.254.169.254", 80, false},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct end a = {.port = cases[i].port};
        assert_true(net_addr_parse(cases[i].address, strlen(cases[i].address), &a.at));
        assert_int_equal(anyip_is_inside(&a), cases[i].inside);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_hold_here),
        cmocka_unit_test(the_first_that_does_not_is_named),
        cmocka_unit_test(there_are_no_facts_beyond_the_last),
        cmocka_unit_test(what_is_inside_is_known_by_its_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
