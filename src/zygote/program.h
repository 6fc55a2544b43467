#pragma once
/* One program, run once in a kernel, as `python3 /workspace/__main__.py` would run it. */

#include "wire/codec.h"

#include <stdbool.h>

/* In the kernel: runs what the K_RUN in `in` asks for, says K_DONE, and ends the process. */
_Noreturn void program_main(struct wire_in *in, bool cgroups);
/* In a child of the zygote that is no kernel: does what K_RUN of a small program does, but for what
 * others would notice. */
void program_scout(void);
