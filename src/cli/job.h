#pragma once
/* One program to run, whoever runs it: what the command line asks for, what is taken from this
 * machine, and how it ended. `cloche run` gives it to an engine (run.c), `cloche run --server` to a
 * server (src/remote). */

#include "base/outdir.h"
#include "cli/client.h"
#include "cli/run_options.h"

struct input;
struct options;

struct job {
    struct options *options; /* owned */
    struct run_options cmd;
    struct buf code;
    struct input *inputs; /* owned */
    unsigned ninputs;
    struct outdir out;
    int signals; /* owned: a signalfd with SIGINT and SIGTERM, unless those were ignored */
    struct client_outcome outcome;
};
#define JOB_INIT                                                                                   \
    { .code = BUF_INIT, .out.fd = -1, .signals = -1, .outcome = CLIENT_OUTCOME_INIT }

/* The command line. */
int job_parse(struct job *j, int argc, char **argv, struct err *e);
/* Finds everything that can be wrong on this side: the program, its files, --out. From here on
 * signals come through j->signals. */
int job_prepare(struct job *j, struct err *e);
/* Says how it ended; returns the exit status. */
int job_finish(struct job *j);
void job_done(struct job *j);
