#pragma once
/* A bar on stderr for a transfer that takes a while; nothing where that is no terminal. */

#include "remote/net/call.h"

struct progress {
    char name[32];
    uint64_t start_ms, shown_ms;
    bool is_terminal, shown;
    struct remote_watch watch; /* for the call */
};

void progress_init(struct progress *p, const char *name);
/* Takes the bar away. */
void progress_done(struct progress *p);
/* The line, without what clears the one before it. */
void progress_write(struct buf *to, const char *name, uint64_t done, uint64_t total, uint64_t ms);
