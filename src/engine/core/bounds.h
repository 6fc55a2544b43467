#pragma once
/* What a program, kernel or command may have at most, whatever its limits are: RUN_MAX_ARGS,
 * RUN_MAX_ENV, RUN_MAX_STRINGS, RUN_MAX_CODE, LIVE_ENV_MAX. They are the wire's, since the messages
 * to kernels have room for no more; whoever stands on the engine has them from here. */

#include "wire/run.h"
