#pragma once
/* Entering a filter that seccomp_compile made (seccomp.h). Needs libc only. */

#include "base/err.h"

#include <stddef.h>

/* With no_new_privs set or CAP_SYS_ADMIN, and one thread: enters a part of the filter. For the late
 * one *ret_listener is the notification descriptor, CLOEXEC; for the early one, which notifies
 * nobody, ret_listener is NULL. Async-signal-safe; libseccomp has taken the name seccomp_load. */
int seccomp_enter(const void *filter, size_t bytes, int *ret_listener, struct err *e);
