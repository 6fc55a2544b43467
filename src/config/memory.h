#pragma once
/* How much memory this machine has for us, for the default of memory_budget_mb. */

#include <stdint.h>

/* The smaller of MemTotal and the limits of the control groups that we are in; 0 when nothing
 * tells. `root` is "" but for tests, which make a /proc and a /sys of their own. */
uint64_t memory_of_machine(const char *root);
/* Three quarters of it, in MB, as text for a setting; the caller's. */
char *memory_default_budget(void);
