#pragma once
/* The compiled filter, and an interpreter of our own that tells its decisions: exact, for numbers,
 * arguments and ABIs that nobody could call safely. */

#include "sandbox/seccomp.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>

#if defined __x86_64__
#define NATIVE AUDIT_ARCH_X86_64
#else
#define NATIVE AUDIT_ARCH_AARCH64
#endif

#define ALLOW  SECCOMP_RET_ALLOW
#define TELL   SECCOMP_RET_USER_NOTIF
#define NOTE   (SECCOMP_RET_USER_NOTIF | 1) /* and goes on */
#define ERR(n) (SECCOMP_RET_ERRNO | (n))
#define HIGH   0x7700000000ull /* bits that the kernel does not read in an int */

extern struct sock_filter filter[SECCOMP_PARTS_][BPF_MAXINSNS];
extern size_t filter_bytes[SECCOMP_PARTS_];

/* For a group of tests, before the first. */
int filter_compile(void **state);
/* What one of them says. */
uint32_t filter_judge_part(enum seccomp_part part, const struct seccomp_data *data);
/* What the kernel would do with that call. */
uint32_t filter_judge(const struct seccomp_data *data);
