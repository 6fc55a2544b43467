#pragma once
/* A file of a live sandbox, in and out: what the native API and the dialects share. They name the
 * sandbox and the path, and reply in their own words; errors are replied to by then. */

#include "api/files/file_call.h"

/* What came of an upload. */
struct files_made {
    const char *path; /* clean; borrowed for the call */
    uint64_t files, bytes;
    bool replaced; /* another file had that name */
};
typedef void files_made_fn(struct call *c, const struct files_made *m);

/* The body, as it comes, into a file. The body is on hold, or nothing of it was read yet. `mode` is
 * octal, or NULL: 0644. */
void files_put(struct call *c, const char *id, const char *path, const char *mode,
               files_made_fn *done);

/* A file's bytes; a directory is no file. */
void files_get(struct call *c, const char *id, const char *path, const char *type);
/* 204; likewise. */
void files_remove(struct call *c, const char *id, const char *path);

/* The answer to FILE_READ as the reply: the bytes of the file. `type` NULL: an octet-stream. */
void files_send(struct file_call *fc, struct file_answer *a, const char *type);
/* The answer to FILE_REMOVE: 204. */
void files_removed(struct file_call *fc, struct file_answer *a);
