#pragma once
/* `cloche sandbox VERB` and `cloche shell`: what their files share. A function that fails on what
 * the server refused leaves the reason in cmd->refused, with *e of kind "refused"; sandbox_cmd.c
 * reports it. */

#include "cli/client.h"
#include "remote/net/call.h"
#include "remote/sandbox/options.h"

#include <signal.h>

struct json_t;

struct sandbox_cmd {
    struct sandbox_options o;
    struct remote *r; /* owned */
    int signals;      /* owned: a signalfd, or -1 */
    sigset_t taken;   /* what comes through it */
    int signal;       /* that ended it, or 0 */
    int status;       /* for the shell */
    size_t answered;  /* bytes of answers to sandbox_cmd_ask; */
    size_t most;      /* and how many there may be; 0: what fits lists */
    struct client_outcome refused;
};

/* Another connection to the same server, for what has to be said while a stream runs. */
int sandbox_cmd_connect(const struct sandbox_cmd *b, struct remote **ret, struct err *e);

/* While nothing has begun that would have to be ended, signals end us as they end any program. */
void sandbox_cmd_allow_signals(const struct sandbox_cmd *b, bool allow);
/* Takes a signal that has come: -1 with *e filled, or 0 when there is none. */
int sandbox_cmd_check_signals(struct sandbox_cmd *b, struct err *e);

/* A call whose answer must be a 2xx. */
int sandbox_cmd_call(struct sandbox_cmd *b, const struct remote_call *c, struct remote_reply *reply,
                     struct err *e);
/* One whose answer is an object; *ret is owned. `body` is borrowed, or NULL. */
int sandbox_cmd_ask(struct sandbox_cmd *b, const char *method, const char *path,
                    const struct json_t *body, struct json_t **ret, struct err *e);
/* Remembers why a reply is no 2xx, or which signal came instead; fills *e. Always -1. */
int sandbox_cmd_refused(struct sandbox_cmd *b, const struct remote_reply *reply, struct err *e);

/* A pair of --env or --metadata into an object. */
int sandbox_cmd_add_pairs(const struct sandbox_words *pairs, struct json_t *to, struct err *e);

/* `cloche sandbox VERB` and `cloche shell`, from their arguments to the exit status. */
int remote_sandbox(int argc, char **argv);
