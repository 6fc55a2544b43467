#pragma once
/* Names and contents of files as a request gives them. */

#include "base/buf.h"

#include <stdbool.h>

/* Takes "." and empty components out, in place. NULL, or what is wrong, in the words of the Code
 * Interpreter API; the name of a program's own file is wrong unless it is free. More than
 * ENTRY_DEPTH_MAX components are told with paths_deep, to which paths_wrong adds the beginning of
 * the path. */
const char *paths_clean(char *path, bool entry_is_free);
/* The same, and "" (the workspace itself) and the entry point are paths like any other. */
const char *paths_normal(char *path);
extern const char paths_deep[];
void paths_wrong(const char *wrong, const char *path, char *out, size_t cap);
/* Its last part. */
const char *paths_name(const char *path);
/* The path as a URL has it: what is not letter, digit, mark or slash becomes %XX. */
void paths_encode(const char *path, struct buf *to);
/* A Content-Disposition for any name: RFC 6266 with the RFC 5987 form beside it. */
void paths_disposition(const char *name, struct buf *to);
