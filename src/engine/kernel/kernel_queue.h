#pragma once
/* The executions that wait for a kernel; for kernel/ only. */

struct cell;
struct err;
struct kernel;

struct cell *kernel_take(struct kernel *k); /* the first; there must be one */
void kernel_unqueue(struct kernel *k, struct cell *c);
void kernel_fail_queue(struct kernel *k, const struct err *why);
