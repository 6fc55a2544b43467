#pragma once
/* `cloche sandbox VERB` and `cloche shell`: what their files share. A function that fails on what
 * the server refused leaves the reason in box->refused, with *e of kind "refused"; box.c reports
 * it. */

#include "cli/client.h"
#include "remote/net/call.h"
#include "remote/sandbox/options.h"

#include <signal.h>

struct json_t;

struct box {
    struct box_options o;
    struct remote *r; /* owned */
    int signals;      /* owned: a signalfd, or -1 */
    sigset_t taken;   /* what comes through it */
    int signal;       /* that ended it, or 0 */
    int status;       /* for the shell */
    size_t answered;  /* bytes of answers to box_ask; */
    size_t most;      /* and how many there may be; 0: what fits lists */
    struct client_outcome refused;
};

/* The verbs; one file for each few. */
int box_create(struct box *b, struct err *e);
int box_list(struct box *b, struct err *e);
int box_show(struct box *b, struct err *e);
int box_delete(struct box *b, struct err *e);
int box_interrupt(struct box *b, struct err *e);
int box_restart(struct box *b, struct err *e);
int box_pause(struct box *b, struct err *e);
int box_resume(struct box *b, struct err *e);
int box_extend(struct box *b, struct err *e);
int box_exec(struct box *b, struct err *e);
int box_logs(struct box *b, struct err *e);
int box_terminal(struct box *b, struct err *e);
int box_put(struct box *b, struct err *e);
int box_get(struct box *b, struct err *e);
int box_ls(struct box *b, struct err *e);
int box_prompt(struct box *b, struct err *e);

/* Another connection to the same server, for what has to be said while a stream runs. */
int box_connect(const struct box *b, struct remote **ret, struct err *e);

/* While nothing has begun that would have to be ended, signals end us as they end any program. */
void box_allow_signals(const struct box *b, bool allow);
/* One that has come; fills *e then, and is -1. */
int box_check_signals(struct box *b, struct err *e);

/* A call whose answer must be a 2xx. */
int box_call(struct box *b, const struct remote_call *c, struct remote_reply *reply, struct err *e);
/* One whose answer is an object; *ret is owned. `body` is borrowed, or NULL. */
int box_ask(struct box *b, const char *method, const char *path, const struct json_t *body,
            struct json_t **ret, struct err *e);
/* Of any reply but 2xx, or a signal; fills *e. Always -1. */
int box_refused(struct box *b, const struct remote_reply *reply, struct err *e);
int box_dump(const struct json_t *value, struct buf *to, struct err *e);

/* The sandbox that the first word names (an id, the beginning of one, a name): its URL's path, to
 * which more can be added. */
int box_find(struct box *b, struct buf *ret_path, struct err *e);
int box_find_word(struct box *b, const char *word, struct buf *ret_path, struct err *e);
/* A sandbox as the options want it; *ret is the answer, owned. */
int box_make(struct box *b, struct json_t **ret, struct err *e);

/* Gives the limits of a sandbox that the options name to the one at `path`. */
int box_change_limits(struct box *b, const char *path, struct err *e);

/* A pair of --env or --metadata into an object. */
int box_add_pairs(const struct box_words *pairs, struct json_t *to, struct err *e);
int box_set_text(struct json_t *to, const char *key, const char *what, const char *text, size_t len,
                 struct err *e);
/* `text` percent-encoded; slashes stay if `keeps_slashes`. */
void box_add_url(struct buf *to, const char *text, bool keeps_slashes);
/* A time of the API for people: "in 5 min", "3 s ago", "-". */
void box_add_moment(struct buf *to, const struct json_t *at);
/* A member of an object as plain text, "" if it is none. */
const char *box_text(const struct json_t *object, const char *key);
