#pragma once
/* What is to be said of a run after its on_done. */

#include "base/rope.h"
#include "engine/core/outcome.h"

#include <stdbool.h>

struct run;

/* What to tell a shell. */
int run_exit_status(const struct run *r);
/* The exception that ended it, as JSON; false: none did. */
bool run_error(const struct run *r, struct buf *to);
/* What its handler returned (RUN_HANDLER), as it says: JSON only if it is honest. */
const struct buf *run_returned(const struct run *r);
/* Why it did not come to its end by itself; or "". */
void run_why(const struct run *r, char *out, size_t cap);
/* All that there is to say to people: a line each. */
void run_notes(const struct run *r, struct buf *to);
struct result_options {
    bool no_output; /* stdout and stderr are left out, and what it has shown (RUN_SHOWN) */
    const char *(*file_id)(void *arg, const char *path); /* of a stored file; or NULL */
    void *arg;
    const struct buf *warnings; /* lines, besides those on limits; or NULL */
};
/* The result object (docs/http.md). */
void run_result(struct run *r, const struct result_options *o, struct rope *to);
struct receipt run_receipt(const struct run *r);
/* What it wrote to stream 1 or 2, with a mark when that was cut; any bytes. Borrowed. */
struct blob *run_text(const struct run *r, int stream);
