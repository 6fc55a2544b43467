#pragma once
/* A command in a live sandbox that a request waits for. For api/ only. */

#include "api/core/call.h"
#include "base/buf.h"
#include "engine/live/live.h"

/* What was found in what it printed. */
struct command_found {
    size_t len[2]; /* of each stream, as far as it is told */
    size_t at;     /* where a value begins in stderr */
    bool is_good;  /* there is what there should be */
    struct buf json;
    char *words[2]; /* owned, or NULL: why it is not good */
};

/* Looks through all that it printed; beside the loop when that is long, so it touches nothing
 * else. `word` is that of the options. */
typedef void command_look_fn(const struct command_end *end, const char *word,
                             struct command_found *ret);

struct command_wait_options {
    command_look_fn *look; /* or NULL: nothing is looked for */
    const char *word;      /* is copied; or NULL */
    void (*then)(struct call *c, const struct command_end *end, struct command_found *found);
};

/* Takes the contents of the request in any case. `then` replies when it is over, unless the client
 * has its reply; the call's state is free then. The command ends with its client, as with a closed
 * terminal. */
void command_wait(struct call *c, struct live *l, struct command_request *q,
                  const struct command_wait_options *o);

/* What a route that waits for a command refuses. */
#define ERRORS_OF_WAIT                                                                             \
    ERRORS_OF_SANDBOX                                                                              \
    "sandbox_paused too_many_commands limit_too_high memory_budget too_much_cpu "                  \
    "audit_unavailable sandbox_lost sandbox_busy "
