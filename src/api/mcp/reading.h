#pragma once
/* A file of a sandbox read for a call, beside the loop (window.h). For api/mcp only. */

#include "api/mcp/file_job.h"
#include "api/mcp/window.h"

struct reading_work;

/* Embedded in the state of a call, as its first member. */
struct reading {
    struct file_job f;
    struct reading_work *work; /* NULL: none is under way */
    void (*then)(struct reading *r, const struct window *w);
};
/* As file_job_new. `how`: whole, or first and lines. */
void reading_begin(struct mcp_call *c, struct live *l, const char *path, const struct window *how,
                   void (*then)(struct reading *r, const struct window *w));
