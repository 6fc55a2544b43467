/* sandbox/cgroup_find: where our own groups are, from the kernel's texts. */

#include "sandbox/cgroup_find.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct {
    const char *name, *mountinfo, *self;
    const char *v2;
    const char *v1[CGROUP_MAX_PROCS + 1]; /* ROLES at PATH, in order */
} place_cases[] = {
    {.name = "pure v2, in a user's session",
     .mountinfo =
         "24 1 0:22 / /sys rw - sysfs sysfs rw\n"
         "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
     .self = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/a.scope\n",
     .v2 = "/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/app.slice/a.scope"},
    {.name = "pure v2, at the root",
     .mountinfo = "30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
     .self = "0::/\n",
     .v2 = "/sys/fs/cgroup"},
    {.name = "hybrid: both are reported",
     .mountinfo = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
                  "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
                  "33 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
                  "34 31 0:36 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"
                  "35 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n"
                  "36 31 0:38 / /sys/fs/cgroup/unified rw shared:9 master:1 - cgroup2 c rw\n",
     .self = "9:name=systemd:/x.service\n4:memory:/x.service\n3:pids:/\n1:cpu,cpuacct:/\n"
             "0::/x.service\n",
     .v2 = "/sys/fs/cgroup/unified/x.service",
     .v1 = {"memory at /sys/fs/cgroup/memory/x.service", "pids at /sys/fs/cgroup/pids",
            "cpu, cpuacct at /sys/fs/cgroup/cpu,cpuacct"}},
    {.name = "v1, one hierarchy a controller",
     .mountinfo = "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
                  "33 31 0:30 / /sys/fs/cgroup/cpuacct rw - cgroup cgroup rw,cpuacct\n"
                  "34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
                  "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
                  "37 31 0:34 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n"
                  "39 31 0:36 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n",
     .self = "8:pids:/\n6:freezer:/\n4:memory:/api/57\n3:cpuset:/\n2:cpuacct:/\n1:cpu:/\n",
     .v1 = {"pids at /sys/fs/cgroup/pids", "freezer at /sys/fs/cgroup/freezer",
            "memory at /sys/fs/cgroup/memory/api/57", "cpuacct at /sys/fs/cgroup/cpuacct",
            "cpu at /sys/fs/cgroup/cpu"}},
    {.name = "v1 in a container: the mounts show the container's own group as their root",
     .mountinfo = "40 39 0:29 /docker/ab /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
                  "41 39 0:30 /docker/ab /sys/fs/cgroup/pids ro - cgroup cgroup rw,pids\n",
     .self = "3:memory:/docker/ab\n2:pids:/docker/ab/sub\n",
     .v1 = {"memory at /sys/fs/cgroup/memory", "pids at /sys/fs/cgroup/pids/sub"}},
    {.name = "a group that no mount shows is left out",
     .mountinfo = "40 39 0:29 /docker/ab /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
                  "41 39 0:30 /../.. /sys/fs/cgroup/unified ro - cgroup2 cgroup2 rw\n",
     .self = "3:memory:/docker/abc\n0::/a\n"},
    {.name = "the second mount is taken when the first does not show it",
     .mountinfo = "40 39 0:29 /other /mnt/a rw - cgroup2 none rw\n"
                  "41 39 0:29 / /mnt/b rw - cgroup2 none rw\n",
     .self = "0::/mine\n",
     .v2 = "/mnt/b/mine"},
    {.name = "escaped blanks in a mount point",
     .mountinfo = "40 39 0:29 /a\\134b /mnt/my\\040groups rw - cgroup2 none rw\n",
     .self = "0::/a\\b/c\n",
     .v2 = "/mnt/my groups/c"},
    {.name = "nothing mounted",
     .mountinfo = "24 1 0:22 / /sys rw - sysfs sysfs rw\n",
     .self = "0::/\n"},
    {.name = "nothing at all", .mountinfo = "", .self = ""},
    {.name = "lines that make no sense are passed over",
     .mountinfo = "\n \n1\n1 2 3\n1 2 3 / /m\n1 2 3 / /m rw - cgroup2\n- - - - - - - - -\n",
     .self = "\n:\n::\n0::\n0::x\n9:memory\n:memory:/\n"},
};

static void finds_our_own_groups(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof place_cases / sizeof place_cases[0]; i++) {
        struct cgroup_places p;
        cgroup_places_parse(place_cases[i].mountinfo, place_cases[i].self, &p);
        print_message("# %s\n", place_cases[i].name);
        assert_string_equal(p.v2, place_cases[i].v2 ? place_cases[i].v2 : "");
        for (unsigned k = 0; k < p.nv1; k++) {
            char roles[64], got[PATH_MAX + 80];
            snprintf(got, sizeof got, "%s at %s",
                     cgroup_roles_format(p.v1[k].roles, roles, sizeof roles), p.v1[k].path);
            assert_non_null(place_cases[i].v1[k]);
            assert_string_equal(got, place_cases[i].v1[k]);
        }
        assert_null(place_cases[i].v1[p.nv1]);
    }
}

static void knows_its_directories_by_name(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int pid;
    } cases[] = {{"cloche-1", 1},  {"cloche-4194304", 4194304}, {"cloche-", 0}, {"cloche-x", 0},
                 {"cloche-1x", 0}, {"cloche-9999999999", 0},    {"cloche", 0},  {"cloche--1", 0},
                 {"xcloche-1", 0}, {"cloche-1.a", 0},           {"", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(cgroup_name_pid(cases[i].name, strlen(cases[i].name)), cases[i].pid);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_our_own_groups),
        cmocka_unit_test(knows_its_directories_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
