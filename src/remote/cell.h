#pragma once
/* One stream of events from a sandbox, at our terminal: a cell in a kernel, or a command. Output
 * passes through as it comes, input() is answered from our stdin, Ctrl-C interrupts. */

#include "remote/events.h"
#include "remote/images.h"
#include "remote/sandbox/sandbox_cmd.h"

#include <termios.h>

struct cell {
    struct sandbox_cmd *cmd; /* borrowed */
    struct remote *side;     /* borrowed: a second connection, for what is said meanwhile */
    const char *sandbox;     /* borrowed: its URL's path */
    const char *kernel;      /* borrowed, or NULL for the first one */
    struct images *images;   /* borrowed */
    bool is_command;
    bool only_looks; /* at what others started: Ctrl-C leaves */

    /* the cell's own */
    struct events events;
    char id[64];        /* the execution's or the command's */
    uint64_t seen;      /* the number of the event that was read last */
    struct json_t *end; /* owned: the result, or NULL */
    bool failed;        /* the service did: cmd->refused says how */
    bool waits;         /* for a line of stdin */
    bool hides;         /* it is a password: `before` is how the terminal was */
    struct termios before;
    struct buf line;
    unsigned signals;
};

/* Before the first use; the borrowed members are the caller's to set. */
#define CELL_INIT                                                                                  \
    { .events = EVENTS_INIT, .line = BUF_INIT }

/* Sends the request and follows the stream to its end. Refusals are in cmd->refused. */
int cell_run(struct cell *c, const char *method, const char *path, const struct buf *body,
             struct err *e);
/* The exit status that the result means, and a line on stderr when it needs one. */
int cell_status(const struct cell *c);
/* Ready for the next. */
void cell_reset(struct cell *c);
void cell_done(struct cell *c);
