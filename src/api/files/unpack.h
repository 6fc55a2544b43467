#pragma once
/* The body, a tar.gz, into a directory of a live sandbox. */

#include "api/files/sandbox_files.h"

/* The body is on hold, or nothing of it was read yet. */
void files_unpack(struct call *c, const char *id, const char *path, files_made_fn *done);
