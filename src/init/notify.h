#pragma once
/* The calls of the sandbox that its filter leaves to init: see notify.c. */

#include "init/internal.h"

/* One call that waits at this process's listener, if there is any. */
void notify_serve(struct init *b, struct proc *from);
