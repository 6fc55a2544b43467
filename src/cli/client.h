#pragma once
/* One run over one connection to an engine: sends the inputs and the program, passes stdin, output,
 * files and signals through, and returns how it ended. */

#include "base/buf.h"
#include "base/err.h"
#include "wire/run.h"

#include <stdbool.h>
#include <stdint.h>

struct input;
struct outdir;

struct client_job {
    int sock;    /* borrowed; made non-blocking */
    int signals; /* borrowed: a signalfd with SIGINT and SIGTERM */
    const struct input *inputs;
    unsigned ninputs;
    const char *network; /* what it may reach, or NULL */
    const struct run_msg *run;
    bool verbose;
    struct outdir *out; /* NULL: files are not wanted */
};

enum client_end {
    CLIENT_RESULT,  /* the program ran: status, why (lines), json */
    CLIENT_REFUSED, /* the engine said no: kind, message, remediation, retryable */
    CLIENT_LOST,    /* the connection ended before that; why says more */
    CLIENT_LEFT, /* we went: a signal before the program started or a third Ctrl-C, or nobody reads
                    our output; status is for the shell */
};

struct client_outcome {
    enum client_end end;
    uint32_t status;
    struct buf why;
    struct buf json; /* the result, or empty: */
    int json_fd;     /* owned: then it is here, or -1 */
    struct buf kind, message, remediation;
    bool retryable;
};
#define CLIENT_OUTCOME_INIT                                                                        \
    {                                                                                              \
        .why = BUF_INIT, .json = BUF_INIT, .json_fd = -1, .kind = BUF_INIT, .message = BUF_INIT,   \
        .remediation = BUF_INIT                                                                    \
    }

/* -1 only for failures on our side (stdout full, --out not writable). */
int client_run(const struct client_job *job, struct client_outcome *ret, struct err *e);
void client_outcome_done(struct client_outcome *o);
