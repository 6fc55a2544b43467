#pragma once
/* The real control groups of this machine for tests: a root and a slot of our own, and children
 * that join it. */

#include "sandbox/cgroup.h"

#include <stdint.h>
#include <sys/types.h>

#define MIB (1u << 20)

extern const struct cgroup_limits limits;

struct real {
    struct cgroup_root root;
    struct cgroup_slot slot;
    char before[4096]; /* /proc/self/cgroup */
};

/* Around each test that has them. */
int real_open(void **state);
int real_close(void **state);
#define REAL(f) cmocka_unit_test_setup_teardown(f, real_open, real_close)
struct real *real_or_skip(void **state);

void read_own_groups(char *out, size_t cap);
/* A child that joins the slot, says so and then does `work`; its end is its return value. */
pid_t child_start(const struct cgroup_slot *s, int (*work)(void *arg), void *arg);
/* Its exit status, or 128 plus the signal that ended it. */
int child_end(pid_t pid);
int work_wait(void *arg);     /* for ever */
int work_allocate(void *arg); /* a size_t; 7 */
void freeze_and_wait(const struct real *x);
