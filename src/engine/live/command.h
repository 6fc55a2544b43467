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
    struct buf lasting; /* of that, for the next server (keep.c); empty: not written yet */
    struct command_callbacks cb;
    enum command_status status;
    bool deleted;
    bool begun;       /* under an earlier server */
    bool has_begun;   /* it is the program that was asked for: signals reach that */
    bool cut;         /* what it printed under an earlier server is lost */
    uint32_t signals; /* that came before; a bit each */
    bool called_off;  /* by us: it is no end of its own */
    struct timer timer;
    uint64_t left_ns; /* of its time, while it is paused */
    double created;
    int terminal; /* owned, or -1 */
    struct output out[2];
    struct utf8_stream utf8[2];
    struct feed stdin_feed;
    struct timer type_timer; /* for more of it, at a terminal */
    bool is_full;            /* as on_full was told */
    struct outcome outcome;  /* but for its status: commands have their own */
    uint64_t kills;          /* in its sandbox for want of memory, before it began */
    uint64_t pids_refused;   /* likewise */
    char why[200];           /* it could not be started, or was killed */
    struct network_attempts network;
    struct deferred free_later;
};
void commands_ended_with(struct live *l);
void commands_pause(struct live *l, bool pause);
/* Those that are over are forgotten. */
void commands_make_room(struct live *l);
struct command *command_resume(struct live *l, struct command_request *q);
/* It ended under that server already. */
void command_resume_over(struct command *c, enum command_status how);
