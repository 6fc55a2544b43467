#pragma once
/* The inside of live sandboxes; for live*.c, process.c, kernel*.c, cell*.c and command.c only. */

#include "base/utf8_stream.h"
#include "engine/core/output.h"
#include "engine/core/sandbox.h"
#include "engine/core/stage.h"
#include "engine/live/journal.h"
#include "engine/live/live.h"

/* ---- network_network_attempts.c: what a cell or a command tried to reach ---- */

struct network_attempts {
    uint64_t base; /* those of the sandbox before */
    uint64_t turn; /* its number among those that began in this sandbox; 0: it began under an
                      earlier server */
    bool alone;    /* nobody else ran then */
};
/* A cell or a command begins, and is over. */
void network_attempts_begin(struct network_attempts *a, struct live *l);
void network_attempts_end(const struct network_attempts *a, const struct live *l,
                          struct denials *to);

/* ---- process.c: what a kernel or a command stands on ---- */

enum process_state {
    PROCESS_NONE,
    PROCESS_ASKED,    /* of the warden */
    PROCESS_EXPECTED, /* of an earlier server: the warden gives it */
    PROCESS_STARTING, /* enters the sandbox */
    PROCESS_READY,    /* said so; from here on it is its owner's */
};

struct process_kind {
    void (*on_ready)(void *owner);   /* it waits to be told what to be */
    void (*on_resumed)(void *owner); /* or this: it goes on, from an earlier server */
    void (*on_frame)(void *owner, struct wire_in *in);
    void (*on_hung_up)(void *owner); /* it closed its control socket; or NULL */
    void (*on_dying)(void *owner);   /* it is dead: what do its descriptors hold? or NULL */
    /* Where to note what it was refused; NULL: nobody is told. */
    struct denials *(*denied)(void *owner);
    /* Once, after that. `why` when it could not be made; else the wait status. */
    void (*on_end)(void *owner, int status, const char *why);
};

struct process {
    struct process *next; /* of its sandbox's */
    struct live *live;    /* borrowed */
    const struct process_kind *kind;
    void *owner;
    enum process_state state;
    bool doomed;   /* to be killed as soon as that is possible */
    char why[200]; /* it said why it cannot be */
    uint32_t number;
    struct config_limits limits; /* its own; memory_mb 0: it has none */
    struct cgroup_fds cgroup;    /* owned: of its own control group, if it has one */
    struct cgroup_usage last;    /* what that told in the end */
    bool was_own;                /* `last` holds it */
    uint64_t heard_ns;           /* see pace.c */
    struct chan *ctl, own;       /* the sandbox's for number 0, else our own */
    int fds[3];                  /* owned: its stdin, stdout, stderr */
    struct timer deadline;
};

/* Asks for one; the kind and the owner are set. */
void process_start(struct process *p, struct live *l);
/* The one that came with the sandbox, and is ready. */
void process_take_first(struct process *p, struct live *l);
void process_signal(struct process *p, int sig, enum signal_scope scope);
/* The request for it, for whoever wants to hear that it has arrived. */
void process_signal_message(const struct process *p, int sig, enum signal_scope scope,
                            struct wire_out *ret);
/* One that an earlier server had; a negative number: none. on_resumed or on_end comes. */
void process_expect(struct process *p, struct live *l, int64_t number);
/* Ends it and all that comes from it; on_end comes. */
void process_kill(struct process *p);
/* Whoever reads it reads its end. */
void process_close_stdin(struct process *p);
/* No more callbacks. */
void process_done(struct process *p);
/* From the warden, and from number 0's socket. */
void processes_made(struct live *l, uint32_t number, struct wire_in *in);
void processes_failed(struct live *l, uint32_t number, const char *why);
void processes_exited(struct live *l, uint32_t number, int status);
void processes_frame(struct live *l, struct wire_in *in);
void processes_hung_up(struct live *l);
/* Where to note what the process was refused, or NULL. */
struct denials *processes_denied(struct live *l, uint32_t number);
void processes_first_here(struct live *l);
/* All that an earlier server had are here: the others are dead. */
void processes_all_here(struct live *l);
/* The sandbox ends, and its kernels and commands have: the rest of them. */
void processes_ended_with(struct live *l);

/* ---- group.c: limits of a kernel's own, and what a control group tells ---- */

/* What a kernel gets that asks for this (or NULL); memory_mb is 0 when it is no group of its own.
 */
int group_settle(const struct live *l, const struct config_limits *want, struct config_limits *ret,
                 struct err *e);
/* The limits are no higher than these. */
int group_lower(struct process *p, const struct config_limits *most, struct err *e);
/* Of the process's own group, also when it has just ended, or of the sandbox's. */
struct cgroup_usage group_usage(struct process *p); /* events: since the last call */
uint64_t group_cpu_us(const struct process *p);
uint64_t group_peak(const struct process *p); /* bytes */
bool group_ran_out_of_memory(const struct process *p);
/* The process has ended. */
void group_leave(struct process *p);
/* Members of an object: limits, and usage if it has some. */
void group_json(const struct process *p, struct jw *j);

/* ---- kernel.c ---- */

#define LATE_MAX (64u << 10) /* bytes printed between two executions: the next one gets them */

enum kernel_state { KERNEL_STARTING, KERNEL_IDLE, KERNEL_BUSY, KERNEL_ENDING };

struct kernel_query {
    struct kernel_query *next;
    struct kernel *kernel;
    uint64_t id;
    kernel_reply_fn *fn; /* NULL: nobody waits any more */
    void *arg;
    struct timer late;
};

struct kernel_wait {
    struct kernel_wait *next;
    kernel_ready_fn *fn;
    void *arg;
};

struct kernel {
    struct kernel *next;
    struct live *live; /* borrowed */
    char id[ID_MAX];
    struct process process;
    enum kernel_state state;
    bool is_default, was_ready;
    bool begun;         /* it was told to be a kernel */
    bool is_fresh;      /* a new process, after another one died or was ended */
    bool forgotten;     /* not among its sandbox's any more */
    const char *broken; /* why its process had to be ended; or NULL */
    bool deleted;       /* no other process comes after this one */
    char *env, *cwd;    /* owned; or NULL */
    char *label;        /* owned; or NULL */
    struct kernel_watcher *watchers;
    struct cell *running;
    struct cell *queue, **queue_end;
    unsigned nqueued, restarts, failures;
    unsigned unread; /* answers, since it last had read all */
    uint64_t execution_count, last_query;
    struct output out[2];
    struct kernel_query *queries;
    struct lent *lent; /* owned: requests in files, oldest first */
    unsigned nlent;
    struct kernel_wait *waits; /* for it to be ready */
    struct timer retry;        /* to start it, or to give up one that hung up */
    struct hearing *hearing;   /* what it said is being read; or NULL */
    struct telling *telling;   /* what is still to be said to it, first to last */
    struct deferred go_later, free_later;
};

void kernel_init(struct kernel *k, struct live *l);
void kernel_begin_first(struct kernel *k);
void kernel_ended_with(struct live *l, const struct err *why); /* all of them */
/* Nothing that it says counts any more. */
void kernel_give_up(struct kernel *k, const char *why);
/* Answers its input(), NULL: nobody does. */
struct kernel_text;
int kernel_input(struct kernel *k, const struct kernel_text *text, struct err *e);
/* Begins the next execution, if it can. */
void kernel_go_on(struct kernel *k);
/* Its process must go: what runs ends as killed. */
void kernel_kill(struct kernel *k);
/* Whoever reads what it prints and shows is slow: it waits. */
void kernel_hold(struct kernel *k, bool hold);
/* What was printed until now. */
void kernel_catch_up(struct kernel *k);
/* Answers the question `id` with what the process is to be: see kernel_query(). */
void kernel_set_up(struct kernel *k, const char *id);
/* The one that ran is over; an interrupt was sent to it. */
void kernel_ran(struct kernel *k, bool interrupted);

/* ---- kernel_talk.c ---- */

struct json_t;
struct said;
struct kernel_text {
    struct json_t *of; /* borrowed: a string, of which this part counts */
    size_t from, len;
};
/* Sends the object that `json` holds. */
void kernel_do(struct kernel *k, const struct buf *json);
/* The same for one with a text in the middle, as a JSON string; may take what is in the buffers. */
void kernel_do_text(struct kernel *k, struct buf *head, const struct kernel_text *text,
                    struct buf *tail);
/* False when it has had too many answers that it does not read, and is given up. */
bool kernel_may_answer(struct kernel *k);
void kernel_on_frame(void *owner, struct wire_in *in);
/* Its process is over: what is on its way either way is nobody's. */
void kernel_untell(struct kernel *k);
void kernel_unhear(struct kernel *k);
/* The sandbox is over: nobody pays any more for what is still being read. */
void kernel_unhear_all(struct live *l);

/* ---- pace.c: what hearing the kernels of a sandbox costs us ---- */

void pace_init(struct live *l);
void pace_end(struct live *l);
/* No kernel of it is heard for now: one message is being read, or it rests. */
bool pace_rests(const struct live *l);
void pace_hold(struct live *l);
void pace_go_on(struct live *l); /* unless it rests still */
/* So much processor time it took to hear what the process (or NULL) said. */
void pace_heard(struct live *l, struct process *p, uint64_t cpu_ns);
/* Processor time of the sandbox, with ours for hearing it. */
uint64_t pace_cpu_us(const struct live *l);

/* ---- kernel_query.c ---- */

void kernel_replied(struct kernel *k, struct said *s);
void kernel_fail_queries(struct kernel *k, const struct err *why);

/* ---- kernel_queue.c ---- */

struct cell *kernel_take(struct kernel *k); /* the first; there must be one */
void kernel_unqueue(struct kernel *k, struct cell *c);
void kernel_fail_queue(struct kernel *k, const struct err *why);

/* ---- cell.c ---- */

enum cell_state { CELL_QUEUED, CELL_RUNNING, CELL_DONE };
enum cell_stop { STOP_NONE, STOP_CLIENT, STOP_TIMEOUT, STOP_CPU, STOP_KERNEL };
enum cell_status { CELL_OK, CELL_ERROR, CELL_TIMEOUT, CELL_MEMORY, CELL_KILLED, CELL_INTERRUPTED };

struct cell_output {
    struct buf shown;           /* {"data":…,"metadata":…, still open */
    size_t plain_at, plain_len; /* see said.h */
    char *display_id;           /* owned, or NULL */
    bool is_main;
};

struct cell {
    struct cell *next; /* in the queue */
    struct kernel *kernel;
    char id[ID_MAX], kernel_id[ID_MAX];
    const char *profile;
    enum cell_state state;
    enum cell_stop stop;
    bool asked_twice;     /* to stop */
    bool was_interrupted; /* and went on */
    uint64_t ends_ns;     /* when its time is up */
    enum cell_status status;
    struct cell_request req;
    size_t size; /* of that */
    struct cell_callbacks cb;
    bool waits_for_input, clear_next, kernel_restarted, finishing, held, files_cut, resumed;
    struct timer timer, cpu_timer;
    uint64_t left_ns; /* of its time, while it is paused */
    uint64_t born_ns, started_ns, ended_ns;
    uint64_t cpu_base_us, cpu_us, memory_peak, changed_since_ns;
    size_t stdin_at;
    struct buf text[2]; /* what is kept of stdout and stderr, at the end */
    uint64_t total[2];
    bool cut[2]; /* something of it is missing: */
    bool full;   /* since there was more than output_bytes */
    struct utf8_stream utf8[2];
    struct cell_output *outputs;
    unsigned noutputs;
    size_t outputs_bytes;
    bool outputs_cut;
    char *error; /* owned: JSON; or NULL */
    char *files; /* owned: the inside of a JSON array; or NULL */
    uint64_t execution_count;
    int exit_code, signal; /* -1 when there is none */
    enum limit_kind limit;
    struct denials denied;
    struct network_attempts network;
    struct deferred free_later;
};

struct cell *cell_make(struct kernel *k, struct cell_request *q, const struct cell_callbacks *cb,
                       struct err *e);
void cell_begin(struct cell *c);
/* One that runs already, under an earlier server. */
struct cell *cell_resume(struct kernel *k, struct cell_request *q);
/* Its end was lost. */
void cell_lost(struct cell *c);
void cell_print(struct cell *c, int stream, const void *data, size_t len);
/* An event of the kernel's; may take what is in it. */
void cell_event(struct cell *c, const char *name, struct said *s);
/* The process is dead. */
void cell_killed(struct cell *c, int status, const char *why);
/* It ends without a result. */
void cell_fail(struct cell *c, const struct err *why);
void cell_limit(struct cell *c, enum limit_kind kind);
void cell_stop(struct cell *c, enum cell_stop why);
void cell_pause(struct cell *c, bool pause);

/* ---- command.c ---- */

enum command_status { COMMAND_RUNNING, COMMAND_EXITED, COMMAND_KILLED, COMMAND_TIMEOUT };

struct command {
    struct command *next;
    struct live *live; /* borrowed */
    char id[ID_MAX];
    struct process process;
    struct command_request req;
    struct command_callbacks cb;
    enum command_status status;
    bool deleted, stdin_closed;
    bool begun;       /* under an earlier server */
    bool has_begun;   /* it is the program that was asked for: signals reach that */
    bool cut;         /* what it printed under an earlier server is lost */
    uint32_t signals; /* that came before; a bit each */
    bool called_off;  /* by us: it is no end of its own */
    struct timer timer;
    uint64_t left_ns; /* of its time, while it is paused */
    double created;
    uint64_t started_ns, ended_ns;
    int terminal; /* owned, or -1 */
    struct output out[2];
    struct utf8_stream utf8[2];
    struct watch stdin_watch;
    struct buf stdin_data;
    size_t stdin_at;
    int exit_code, signal; /* -1: none */
    uint64_t kills;        /* in its sandbox for want of memory, before it began */
    uint64_t pids_refused; /* likewise */
    enum limit_kind limit; /* that it met, once it is over */
    char why[200];         /* it could not be started, or was killed */
    struct denials denied;
    struct network_attempts network;
    struct deferred free_later;
};
void commands_ended_with(struct live *l);
void commands_pause(struct live *l, bool pause);
struct command *command_resume(struct live *l, struct command_request *q);

/* ---- live.c ---- */

enum live_state {
    LIVE_WAITING, /* for a sandbox */
    LIVE_STAGING, /* limits and files */
    LIVE_RUNNING,
    LIVE_ENDED
};

struct live {
    struct live *next;
    struct engine *engine;
    struct profile_pool *pool;
    struct guest guest;
    struct sandbox *sandbox; /* borrowed while it is ours */
    enum live_state state;
    char id[ID_MAX];
    struct live_request req;
    char *profile; /* owned: the name of the lean twin */
    struct stage stage;
    double created;
    uint64_t expires_ns, idle_since_ns; /* 0: never; in use */
    unsigned held;
    bool paused;
    struct timer timer; /* while it waits: for a sandbox; then: its end */
    live_ready_fn *ready;
    void *ready_arg;
    struct kernel *kernels; /* the default one first */
    struct process *processes;
    struct command *commands; /* oldest first */
    struct live_watcher *watchers;
    uint32_t last_number;
    uint64_t executions, memory_peak;
    uint64_t turns;       /* cells and commands that began; see network_attempts.c */
    uint64_t cpu_told_us; /* see cpu_account.c */
    uint64_t heard_ns, tired_ns, tired_at_ns; /* see pace.c */
    struct hearing *hearings;                 /* what its kernels said is being read; or NULL */
    struct timer rest;                        /* from hearing them */
    struct timer account_timer;
    uint64_t kills_below, cpu_below_us; /* in control groups of kernels that are gone */
    struct journal *journal;            /* owned; NULL: it ends with this server */
    uint32_t to_come;                   /* processes that an earlier server had */
    struct deferred write_later, free_later;
    bool unwritten; /* the journal is behind */
};

/* ---- cpu_account.c: processor time outside of executions ---- */
void cpu_account_begin(struct live *l); /* its sandbox is there */
void cpu_account_end(struct live *l);   /* while that is there */

/* ---- keep.c: for the next server ---- */
void live_keep_init(struct live *l);
void live_keep(struct live *l);
/* Something of what the next server has to know is different now. */
void live_changed(struct live *l);
/* An event was told. */
void live_said(struct live *l);
/* From an earlier one: live.c's part of it. */
struct live *live_inherit(struct engine *g, struct sandbox *s);
void live_inherited(struct live *l, uint32_t processes);
void live_disown(struct live *l);
