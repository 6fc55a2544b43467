#pragma once
/* The inside of an execution in a kernel; for live/ only. Others see it through live.h. */

#include "base/id.h"
#include "base/utf8_stream.h"
#include "engine/live/live.h"
#include "engine/live/network_attempts.h"
#include "loop/loop.h"
#include "wire/messages.h"

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
    uint8_t waits;        /* that its clock was put off since the sandbox is not heard */
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
    struct file_ask ask; /* for the files that it made */
    struct network_attempts network;
    struct deferred free_later;
};

struct cell *cell_make(struct kernel *k, struct cell_request *q, const struct cell_callbacks *cb,
                       struct err *e);
void cell_begin(struct cell *c);
/* One that runs already, under an earlier server. */
struct cell *cell_resume(struct kernel *k, struct cell_request *q);
void cell_stop(struct cell *c, enum cell_stop why);
void cell_stop_clocks(struct cell *c);
void cell_pause(struct cell *c, bool pause);
