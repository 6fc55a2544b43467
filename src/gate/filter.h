#pragma once
/* The system calls that the gate can make from here on. No privilege is left either. */

#include "base/err.h"

#include <stdbool.h>

int filter_enter(struct err *e);
/* Builds with sanitizers or for coverage have none. */
bool filter_is_off(void);
