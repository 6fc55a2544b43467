#pragma once
/* The one place of the warden that forks. The descriptors become 3, 4, … of the new program. */

#include "warden/warden.h"

#define SPAWN_MAX_FDS (3 + HTTP_FD_DIRS_ + HTTP_MAX_LISTENERS) /* as many as the server gets */

struct spawn {
    const char *program; /* name in libexec */
    const char *const *argv;
    const int *fds;
    unsigned nfds;
    bool unprivileged; /* give up root, if we have it */
};

int spawn(const struct warden *w, const struct spawn *s, pid_t *ret, struct err *e);
