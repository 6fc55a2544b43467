#pragma once
/* A server that runs, seen from here: what it says of a profile, and that it reads them again. */

#include "base/err.h"

#include <stdbool.h>

struct options;

enum tell_state { TELL_NONE, TELL_UNKNOWN, TELL_STARTING, TELL_READY, TELL_BROKEN };

struct told {
    enum tell_state state; /* NONE: no server; UNKNOWN: it has no such profile */
    unsigned busy;         /* sandboxes of it that have a program, or are live */
    char what[200];        /* why it is broken */
    char stamp[24];        /* of what it is made of */
};

void tell_look(const struct options *o, const char *profile, struct told *ret);
/* Has it read its profiles, and waits until it has taken this one up as it is now, or, where it is
 * gone, until it has forgotten it. `before` is how that was. Says so on stderr. */
void tell_reload(const struct options *o, const char *profile, const struct told *before,
                 bool is_gone);
