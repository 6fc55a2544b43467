#pragma once
/* A process of a sandbox that becomes another program. */

#include "wire/codec.h"

/* In the kernel: executes what the K_EXEC in `in` names. When that cannot be, it says so on stderr
 * and ends as a shell would: 127 for a program that is not there, 126 for any other reason. */
_Noreturn void command_main(struct wire_in *in);
