#pragma once
/* Giving up every capability, for good. Raw system calls, async-signal-safe, libc only: both run
 * between fork and hand-over. */

#include "base/err.h"

/* Before setuid: the permitted set survives it, so that caps_drop_all may still empty the bounding
 * set. Root that changes to another uid would lose that right otherwise. */
int caps_keep(struct err *e);

/* After setuid: bounding, ambient, inheritable, permitted and effective set are empty, the
 * securebits say that uid 0 means nothing and are locked. Fails when any of the five sets cannot be
 * emptied, which includes a bounding set without CAP_SETPCAP (caps_keep forgotten). */
int caps_drop_all(struct err *e);

/* For a process with no_new_privs that may have no right to empty the bounding set: the other four
 * are empty, and no exec fills them again. */
int caps_drop_held(struct err *e);
