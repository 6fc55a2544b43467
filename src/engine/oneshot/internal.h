#pragma once
/* The inside of a run; for oneshot/ only. */

#include "base/id.h"
#include "engine/core/cpu_limit.h"
#include "engine/core/feed.h"
#include "engine/core/files.h"
#include "engine/core/outcome.h"
#include "engine/core/output.h"
#include "engine/core/rest.h"
#include "engine/core/sandbox.h"
#include "engine/core/stage.h"
#include "engine/oneshot/run.h"
#include "engine/said/shown.h"
#include "wire/run.h"

enum run_state {
    RUN_QUEUED,     /* waits for a sandbox */
    RUN_STAGING,    /* init sets limits and opens the input files */
    RUN_ACTIVE,     /* the program runs */
    RUN_KILLING,    /* its time is up: init kills all that is left */
    RUN_COLLECTING, /* the files that it made */
    RUN_DONE,
    RUN_STATES_
};

enum run_end {
    END_NONE,
    END_DONE,    /* K_DONE: the program ended by itself */
    END_EXIT,    /* the process ended without K_DONE */
    END_TIMEOUT, /* killed by us */
    END_CPU,
    END_MEMORY, /* by the watchdog */
    END_SIGNAL, /* killed because the client asked for it */
};

struct run {
    struct guest guest;
    struct engine *engine;
    struct profile_pool *pool;
    struct sandbox *sandbox; /* borrowed while it is ours */
    enum run_state state;
    enum run_end end;
    struct run_request req;
    struct run_callbacks cb;
    bool cancelled, warm;
    char id[ID_MAX];
    struct timer timer; /* queue deadline, then wall clock */
    struct cpu_limit cpu_limit;
    struct output out[2];
    uint8_t waits;               /* that its clock was put off since it is being heard */
    bool is_held;                /* whoever follows it is behind */
    uint64_t heard_ns;           /* our time for reading them, and what the kernel says, */
    struct rest rest;            /* and the rest from it */
    struct shown shown;          /* RUN_SHOWN */
    struct run_hearing *hearing; /* borrowed: a long message that is being read; or NULL */
    bool owes_answer;            /* we, to the kernel: it waits for that */
    bool has_exited; /* the kernel, with `status`; what it said before is heard first, */
    int status;
    unsigned last_words;       /* in so many pieces, */
    struct loop_sharer ending; /* in turns with others */
    struct feed stdin_feed;
    struct stage stage;
    struct file_ask ask;    /* which files it changed, and then for each of them */
    unsigned collected;     /* changed files opened */
    struct copy *comparing; /* the file at hand with what was given under its name; or NULL */
    int file;               /* owned meanwhile: the file at hand */
    bool keeping;           /* it is with the one who asked for the run: see run_next_file */
    struct outcome outcome;
    enum done_how how;
    char *error_name, *error_value;
    char **traceback;
    unsigned ntraceback;
    struct buf returned;  /* by a handler, in its own words: JSON if it is honest */
    bool is_measured;     /* the outcome has what the control group or init told of its use */
    bool out_of_memory;   /* the control group says so */
    enum limit_kind met;  /* by init's word, and gone on */
    uint64_t said_cpu_us; /* by the program itself: no more than the wall clock is believed */
    struct deferred free_later;
};

void run_move(struct run *r, enum run_state to);
/* What was printed and noted until now; whoever hears of it may call the run off. */
void run_catch_up(struct run *r);
/* The program is over; its descriptors tell what is left to know. */
void run_ended(struct run *r, enum run_end end);
void run_kill(struct run *r, enum run_end end);
/* So much of our time it took to read what it printed or said. */
void run_pay(struct run *r, uint64_t cpu_ns);
void run_finish(struct run *r);
/* It ends without a result. */
void run_fail(struct run *r, const struct err *why);
