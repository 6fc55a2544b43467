#pragma once
/* What hearing the kernels of a sandbox, and reading what is printed in it, costs us. */

#include <stdbool.h>
#include <stdint.h>

struct live;
struct process;

void pace_init(struct live *l);
void pace_end(struct live *l);
/* No kernel of it is heard for now: one message is being read, or it rests. */
bool pace_rests(const struct live *l);
void pace_hold(struct live *l);
void pace_go_on(struct live *l); /* unless it rests still */
/* So much processor time it took to hear what the process (or NULL) said, or to read what it
 * printed. */
void pace_heard(struct live *l, struct process *p, uint64_t cpu_ns);
/* So much it took to serve one of its clients, beside the loop, in its tenant's turns: the sandbox
 * pays, and is heard on. */
void pace_served(struct live *l, uint64_t cpu_ns);
/* Processor time of the sandbox, with ours for hearing it. */
uint64_t pace_cpu_us(const struct live *l);
