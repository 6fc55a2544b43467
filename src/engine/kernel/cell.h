#pragma once
/* The inside of an execution in a kernel; for kernel/ and live/ only. Others see it through
 * kernels.h. */

#include "base/id.h"
#include "base/utf8_stream.h"
#include "engine/core/cpu_limit.h"
#include "engine/core/files.h"
#include "engine/core/outcome.h"
#include "engine/kernel/kernels.h"
#include "engine/process/network_attempts.h"
#include "engine/said/shown.h"
#include "loop/loop.h"
#include "wire/messages.h"

enum cell_state {
    CELL_QUEUED,
    CELL_RUNNING,
    CELL_FINISHING, /* it is over, and init looks for the files that it made */
    CELL_DONE,
    CELL_STATES_
};
enum cell_stop { STOP_NONE, STOP_CLIENT, STOP_TIMEOUT, STOP_CPU, STOP_KERNEL };

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
    struct cell_request req;
    size_t size; /* of that */
    struct cell_callbacks cb;
    bool waits_for_input, clear_next, kernel_restarted, held, resumed;
    struct timer timer;
    struct cpu_limit cpu_limit;
    uint64_t left_ns; /* of its time, while it is paused */
    uint64_t cpu_base_us, changed_since_ns;
    size_t stdin_at;
    struct kept *account; /* borrowed from the sandbox, which outlives it */
    struct buf text[2];   /* what is kept of stdout and stderr, at the end */
    uint64_t text_bytes;  /* of those, as they count in the account */
    bool full;            /* there was more than output_bytes of them */
    struct utf8_stream utf8[2];
    struct shown shown;
    char *error; /* owned: JSON; or NULL */
    uint64_t execution_count;
    struct outcome outcome;
    struct file_ask ask; /* for the files that it made */
    unsigned asking;     /* answers of init that are still to come, then */
    struct network_attempts network;
    struct deferred free_later;
};

void cell_move(struct cell *c, enum cell_state to);
/* Nothing that is said of it counts any more. */
bool cell_is_over(const struct cell *c);
struct cell *cell_make(struct kernel *k, struct cell_request *q, const struct cell_callbacks *cb,
                       struct err *e);
void cell_begin(struct cell *c);
/* One that runs already, under an earlier server. */
struct cell *cell_resume(struct kernel *k, struct cell_request *q);
void cell_stop(struct cell *c, enum cell_stop why);
void cell_stop_clocks(struct cell *c);
void cell_pause(struct cell *c, bool pause);
