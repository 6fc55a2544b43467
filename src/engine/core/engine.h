#pragma once
/* The engine: sandboxes kept ready, programs run in them, receipts. Lives in the server process,
 * which has no privilege: it asks the warden for sandboxes and holds descriptors to the rest.
 *
 * A caller makes a struct run_request, hands it to run_new with its callbacks, and gets on_output
 * as the program writes and on_done exactly once. run_cancel may come any time before that. */

#include "base/rope.h"
#include "config/config.h"
#include "engine/core/about.h"
#include "engine/core/cgroup_fds.h"
#include "engine/core/denials.h"
#include "engine/core/queue.h"
#include "loop/loop.h"
#include "wire/chan.h"
#include "wire/run.h"

#include <stdbool.h>
#include <stdint.h>

struct engine;
struct run;
struct sandbox;
struct live;
struct cell;
struct command;
struct crew;
struct gone;

struct profile_pool {
    struct engine *engine; /* borrowed */
    const struct config_profile *config;
    unsigned index;
    enum profile_state state;
    char what[2048];         /* version when ready, else the reason */
    char modules[4096];      /* top-level modules it preloads, space separated */
    struct sandbox *ready;   /* oldest first */
    unsigned nready, making; /* `making`: asked for and not yet ready */
    struct queue queue;      /* of runs */
    unsigned failures;       /* in a row */
    char last_failure[ERR_TEXT_MAX];
    struct timer retry, refill;
};

/* Who takes up what an earlier server began in live sandboxes (see live.h); `number` is that of the
 * last event that it may have told. Either may be NULL. */
struct live_heir {
    void *arg;
    void (*cell)(void *arg, struct live *l, struct cell *c, uint64_t number);
    void (*command)(void *arg, struct live *l, struct command *c, uint64_t number);
};

struct engine_counts {
    uint64_t runs;
    unsigned sandboxes; /* alive, in any state */
    uint64_t requests;  /* over HTTP, answered or not; the API counts them */
};

struct engine {
    struct loop *loop; /* borrowed */
    struct crew *crew; /* borrowed: for what takes longer than a turn of the loop may */
    struct config config;
    struct chan warden;
    struct profile_pool pools[CONFIG_MAX_PROFILES];
    struct sandbox *sandboxes;  /* all that are not gone */
    struct cgroup_fds *cgroups; /* by slot, config.max_sandboxes */
    unsigned max_making;        /* sandboxes of one profile being made at a time */
    unsigned turn;              /* the profile that is first to get the next place */
    uint64_t charged;           /* bytes of the memory budget; see budget.c */
    uint64_t measured_ns;       /* when they were last looked at */
    struct timer look_again;    /* somebody waits for memory, and some may be given back */
    struct timer look;          /* at sandboxes whose disk is large; see memory_watch.c */
    bool no_groups;             /* sandboxes have no control groups: nothing can be measured */
    struct engine_counts counts;
    struct engine_about about;
    struct live *lives; /* live sandboxes, oldest first; see live.h */
    bool unwritten;     /* the journal of one of them is behind */
    struct gone *gone;  /* those that were */
    struct live_heir heir;
    /* Processor time that a live sandbox has used outside of its executions; or NULL. */
    void (*on_cpu_account)(void *arg, const char *payer, double cpu_seconds);
    void *cpu_account_arg;
    /* A command of a live sandbox is over, whoever waits for that; or NULL. */
    void (*on_command)(void *arg, const struct live *l, const struct command *c);
    void *command_arg;
    /* What keeps programs from running that the engine does not know of; or NULL, as its answer. */
    const char *(*trouble)(void *arg);
    void *trouble_arg;
    /* Once: all that an earlier server kept is here. Before that nobody may ask for it. */
    void (*on_settled)(void *arg);
    void *settled_arg;
};

/* Takes the warden's socket. */
int engine_init(struct engine *g, struct loop *l, int config_fd, int *warden_fd, struct err *e);
/* Where the live sandboxes of a named profile are made; NULL where there are none. */
struct profile_pool *engine_live_pool(struct engine *g, const char *name);
/* State for people and machines, as JSON. */
unsigned live_count(const struct engine *g);
/* Cells that run in them. */
unsigned live_running(const struct engine *g);
struct buf;
void engine_state(const struct engine *g, struct buf *to);

struct run_input {
    char *path; /* owned: relative to the workspace */
    uint32_t mode;
    int fd; /* owned: what to copy in */
    uint64_t size;
};

struct run_request {
    uint32_t flags;              /* enum run_flag */
    char *tenant;                /* owned: who takes turns with others; NULL is a tenant, too */
    char *profile;               /* owned: a name, or auto */
    struct config_limits limits; /* 0: the default; run_new fills them in */
    char **args, **env;          /* owned */
    unsigned nargs, nenv;
    int code_fd; /* owned: -1 when the code is in `code` */
    uint8_t *code;
    size_t code_len;
    struct run_input *inputs;
    unsigned ninputs;
    uint64_t files_bytes; /* of the inputs; run_new fills it in */
    bool own_bounds;      /* its time and memory were held against other maxima than the engine's */
};
void run_request_done(struct run_request *q);

struct run_callbacks {
    void *arg;
    void (*on_start)(void *arg, struct run *r);
    void (*on_output)(void *arg, int stream, const void *data, size_t len);
    /* The program took so much of its stdin (RUN_STDIN); 0: it reads no more, the rest is dropped.
     */
    void (*on_stdin)(void *arg, size_t taken);
    /* A file that was made or changed (RUN_FILES), of which so many bytes count; the descriptor may
     * be taken. True: it takes time, and run_next_file is called when it is through. */
    bool (*on_file)(void *arg, const char *path, uint64_t size, int *fd);
    /* Once. `why` is NULL when there is a result. The run is freed after it. */
    void (*on_done)(void *arg, struct run *r, const struct err *why);
};

/* Checks the request and queues it; takes its contents. On failure nothing was taken. */
int run_new(struct engine *g, struct run_request *q, const struct run_callbacks *cb,
            struct run **ret, struct err *e);
/* The one who asked is gone: no more callbacks. */
void run_cancel(struct run *r);
/* More for the program's stdin; len 0 is its end. */
void run_stdin(struct run *r, const void *data, size_t len);
/* The same with a text that need not be copied: a reference is taken. Before any other. */
void run_stdin_text(struct run *r, struct json_t *text);
size_t run_stdin_backlog(const struct run *r);
void run_signal(struct run *r, int sig);
void run_next_file(struct run *r); /* see on_file */
/* The consumer of the output is slow: stop, or go on, reading from the program. */
void run_hold(struct run *r, bool hold);

/* After on_done: what to tell a shell, and the result of api.md. */
int run_exit_status(const struct run *r);
/* What its handler returned (RUN_HANDLER), as it says: JSON only if it is honest. */
const struct buf *run_returned(const struct run *r);
/* Why it did not come to its end by itself; or "". */
void run_why(const struct run *r, char *out, size_t cap);
/* All that there is to say to people: a line each. */
void run_notes(const struct run *r, struct buf *to);
struct result_options {
    bool no_output;                                      /* stdout and stderr are left out */
    const char *(*file_id)(void *arg, const char *path); /* of a stored file; or NULL */
    void *arg;
    const struct buf *warnings; /* lines, besides those on limits; or NULL */
};
void run_result(struct run *r, const struct result_options *o, struct rope *to);
const char *run_id(const struct run *r);

/* The result in short, for counters and logs; lives as long as the run. */
struct run_receipt {
    const char *status, *profile;
    double wall_ms, queue_ms, cpu_ms;
    uint64_t memory_peak;
    uint32_t timeout_ms; /* what it had */
    const char *refused; /* why the policy did not let it begin, or NULL */
    const struct denials *denied;
};
struct run_receipt run_receipt(const struct run *r);
/* What it wrote to stream 1 or 2, with a mark when that was cut; any bytes. Borrowed. */
struct blob *run_text(const struct run *r, int stream);
