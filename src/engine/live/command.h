#pragma once
/* The inside of a command; for live/ only. Others see it through live.h. */

#include "base/id.h"
#include "base/utf8_stream.h"
#include "engine/core/feed.h"
#include "engine/core/outcome.h"
#include "engine/core/output.h"
#include "engine/live/live.h"
#include "engine/process/network_attempts.h"
#include "engine/process/process.h"

#include <termios.h>

enum command_status {
    COMMAND_RUNNING,
    COMMAND_EXITED,
    COMMAND_KILLED,
    COMMAND_TIMEOUT,
    COMMAND_STATES_
};

struct command {
    struct command *next;
    struct live *live; /* borrowed */
    char id[ID_MAX];
    struct process process;
    struct command_request req;
    struct buf lasting; /* `req` for the next server (keep.c); empty: not written yet */
    struct command_callbacks cb;
    enum command_status status;
    bool deleted;
    bool begun;       /* an earlier server began it */
    bool has_begun;   /* the program runs: signals reach it */
    bool cut;         /* what it printed under an earlier server is lost */
    uint32_t signals; /* that came before the program; a bit each */
    bool called_off;  /* we ended it */
    struct timer timer;
    uint64_t left_ns; /* time left, while paused */
    double created;
    int terminal; /* owned, or -1 */
    struct output out[2];
    struct utf8_stream utf8[2];
    struct feed stdin_feed;
    size_t stdin_counted;    /* of what waits there, in the sandbox's charge */
    struct timer type_timer; /* the next piece of typing */
    struct termios typed_as; /* the terminal's settings when the last one was typed, */
    size_t typed;            /* and its bytes */
    bool is_full;            /* as on_full was told */
    struct outcome outcome;  /* without its status: `status` above */
    uint64_t kills;          /* for want of memory in its sandbox, before it began */
    uint64_t pids_refused;   /* likewise */
    char why[200];           /* why it could not start, or was killed */
    struct network_attempts network;
    struct deferred free_later;
};
void commands_ended_with(struct live *l);
void commands_pause(struct live *l, bool pause);
/* Forgets commands that are over. */
void commands_make_room(struct live *l);
struct command *command_resume(struct live *l, struct command_request *q);
/* For one that ended under the earlier server. */
void command_resume_over(struct command *c, enum command_status how);
