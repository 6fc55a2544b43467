#pragma once
/* A tool call about the files of its sandbox: it asks one question after the other
 * (engine/core/files.h), and the sandbox is looked up again each time. For api/mcp only. */

#include "engine/live/live.h"
#include "mcp/call.h"

struct file_job;
/* The answer, to what went well; for anything else the call has its answer. */
typedef void file_job_fn(struct file_job *f, struct file_answer *a);
/* It went wrong with this errno; true when that is dealt with. */
typedef bool file_job_error_fn(struct file_job *f, int errnum);

/* Embedded in the state of a call, as its first member. */
struct file_job {
    struct mcp_call *call;
    char sandbox[ID_MAX];
    char *path; /* owned: from the workspace, cleaned; "" is the workspace */
    struct file_ask ask;
    bool held;
    bool writes; /* a file is to be where the path says */
    file_job_fn *then;
    file_job_error_fn *on_error;         /* or NULL; set before each question */
    void (*on_done)(struct file_job *f); /* frees what the rest of the state owns; or NULL */
};

/* Makes `size` bytes of state, which begin with a struct file_job, and gives them to the call.
 * `path` is as a model writes it: from the workspace, or /workspace/…. NULL when the call has its
 * answer. */
void *file_job_new(struct mcp_call *c, struct live *l, const char *path, size_t size,
                   void (*on_done)(struct file_job *f));
void file_job_ask(struct file_job *f, const struct file_question *q, file_job_fn *then);
/* NULL when it is gone; then the call has its answer. */
struct live *file_job_live(const struct file_job *f);
/* A tool's error, or that there is no such resource. */
void file_job_fail(struct file_job *f, int errnum, const char *why);
