#pragma once
/* Live sandboxes: sandboxes that stay, with kernels that keep their state and commands beside them.
 * The native API and the dialects stand on this; it knows nothing of HTTP.
 *
 * By callbacks, on the loop. A struct live, kernel, cell or command is borrowed by whoever found it
 * until the loop's next turn; who comes back later looks it up again by its id.
 *
 * This is the header for others: it has all of what they may use, and includes the rest of that. */

#include "base/id.h"
#include "base/json.h"
#include "config/config.h"
#include "engine/core/denials.h"
#include "engine/core/files.h"
#include "engine/core/outcome.h"
#include "engine/kernel/kernels.h"
#include "engine/live/command_view.h"
#include "engine/live/live_binds.h"
#include "engine/live/live_change.h"
#include "engine/live/live_network.h"
#include "engine/live/live_ports.h"
#include "engine/live/live_view.h"
#include "engine/process/live_hold.h"
#include "engine/process/live_request.h"

struct cell;
struct engine;
struct kernel;
struct live;
struct sandbox;

/* ---- a live sandbox ---- */

/* Takes the request's contents on success. The callback may come before it returns. */
int live_new(struct engine *g, struct live_request *q, live_ready_fn *fn, void *arg,
             struct live **ret, struct err *e);
/* Whoever asked is gone: no callback, and the sandbox is ended. */
void live_cancel(struct live *l);

/* Puts down for the next server what has changed: before a client is told of it. */
void live_write_all(struct engine *g);

/* NULL with kind "no_such_sandbox", or "sandbox_gone" and the reason. Another tenant's is none. */
struct live *live_find(struct engine *g, const char *tenant, const char *id, struct err *e);
/* Another one of the tenant's than `except` (or NULL) has that name, or waits to be made with it.
 */
bool live_name_taken(const struct engine *g, const char *tenant, const char *name,
                     const struct live *except);
/* The tenant's (NULL: everybody's), oldest first: the first, and the one after `l`. */
struct live *live_next(struct engine *g, const char *tenant, const struct live *l);
/* Told once when it ends, after its executions; who leaves before takes itself out. */
struct live_watcher {
    struct live_watcher *next, **at; /* what leads here: there may be thousands */
    struct live *live;               /* borrowed; NULL when it has ended, or was left */
    void (*on_end)(struct live_watcher *w, const struct err *why);
    void *arg;
};
void live_watch(struct live *l, struct live_watcher *w);
void live_unwatch(struct live_watcher *w);
/* Kills all of it; `done` when nothing is left. `reason` is a constant, for those who come later.
 */
void live_end(struct live *l, const char *reason, void (*done)(void *arg), void *arg);

/* For its files: see engine/core/files.h. */
struct sandbox *live_sandbox(const struct live *l);

/* ---- commands ---- */

struct command;

struct command_request {
    char **argv;               /* owned, NULL-terminated */
    char *shown;               /* owned: what was asked for, for people */
    char *cwd;                 /* owned */
    char *env;                 /* owned: JSON, besides the sandbox's; or NULL */
    struct json_t *stdin_text; /* owned: a string that its stdin begins with; or NULL */
    bool stdin_open;           /* more may come (command_stdin) */
    uint32_t timeout_ms;       /* 0: none */
    uint64_t output_bytes;     /* kept of each stream; 0: the sandbox's */
    uint32_t rows, columns;    /* 0: no terminal */
    bool stays;                /* when who sits at its terminal leaves: for command_stays only */
    char request[40], key[24]; /* who asked for it, for on_command; "" after a server's death */
};
void command_request_done(struct command_request *q);

struct command_callbacks {
    void *arg;
    /* start, stdout, stderr. */
    void (*on_event)(void *arg, const char *type, const struct buf *json);
    /* What a terminal shows, as it comes; or NULL. */
    void (*on_bytes)(void *arg, const void *data, size_t len);
    /* Of a terminal: what its client sends is not to be read for now, or again; or NULL. */
    void (*on_full)(void *arg, bool is_full);
    /* Once: it is over. It can still be found by its id. */
    void (*on_done)(void *arg, struct command *c);
    /* Or this: another one gets all that from now on (command_call); or NULL. */
    void (*on_replaced)(void *arg);
};
/* 0, or -1 with kind "too_many_commands". */
int command_may_start(const struct live *l, struct err *e);
int command_new(struct live *l, struct command_request *q, const struct command_callbacks *cb,
                struct command **ret, struct err *e);
/* To its process group, as soon as it is there; SIGKILL to all that comes from it. */
int command_signal(struct command *c, int sig, struct err *e);
/* No bytes are the end of its stdin. Kind "stdin_closed", "stdin_full". */
int command_stdin(struct command *c, const void *data, size_t len, struct err *e);
/* What a client of its kernels said, or what they answered, took us so long. The sandbox pays. */
void live_heard(struct live *l, uint64_t cpu_ns);
/* Work for one of its clients, beside the loop, took us so long. The sandbox pays. */
void live_served(struct live *l, uint64_t cpu_ns);

/* Of a terminal: reading what its client sent took us so long. The sandbox pays. */
void command_heard(struct command *c, uint64_t cpu_ns);
void command_resize(struct command *c, uint32_t rows, uint32_t columns);
/* Its terminal goes: it hears SIGHUP, and reads and writes fail. */
void command_hang_up(struct command *c);
void command_hold(struct command *c, bool hold);
/* Another one wants its events from now on. */
void command_call(struct command *c, const struct command_callbacks *cb);
/* Killed if it runs, and forgotten. */
void command_delete(struct command *c);
